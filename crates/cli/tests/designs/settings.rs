//! Settings of the designs where they are set: for the proxy, for chat, and in the environment.

use trimtab_model::Dialect;

use crate::chatted::Chatted;
use crate::proxied::Proxied;
use crate::scripted::{main_calls, outputs, without_way_back};
use crate::talk::log;
use trimtab_testkit::script::ScriptedReply;

#[tokio::test(flavor = "multi_thread")]
async fn window_of_the_settings_holds_in_the_proxy() {
    for args in [
        ["--preset", "steady", "--set", "window=9000"],
        ["--preset", "turns", "--set", "window=9000"],
    ] {
        let mut talk = Proxied::start(Dialect::Chat, &args).await;
        for number in 0..14 {
            talk.round(&[&format!("OUTPUT-{number}\n{}", log(60))]);
        }
        let sent = talk.send().await;
        assert!(sent.tokens < 9_000, "{args:?}: {} tokens", sent.tokens);
    }
}

/// The outputs of a chat under `retention` that reads a file of 3,000 characters in each of three
/// rounds, in the last request.
fn outputs_in_chat(settings: &[&str]) -> Vec<String> {
    let chatted = Chatted::new(None);
    chatted.file("a.txt", &"word ".repeat(600));
    for _ in 0..3 {
        let read = serde_json::json!({"path": "a.txt"});
        chatted.answers.say(ScriptedReply::call("read_file", read));
    }
    chatted.answers.report_input(45_000);
    let args = ["--preset", "retention", "--window", "200000"];
    let told = chatted.chat(&[&args[..], settings].concat(), "go on\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    outputs(main_calls(&chatted.upstream).last().unwrap())
}

#[test]
fn chat_keeps_as_many_characters_as_the_settings_say() {
    let marker = "\n\n[truncated for context management]";
    let kept = |settings: &[&str]| {
        let shown = outputs_in_chat(settings).remove(0);
        let shown = without_way_back(&shown).strip_suffix(marker)?.len();
        Some(shown)
    };
    assert_eq!(kept(&[]), Some(500));
    assert_eq!(kept(&["--set", "ageing.prefix.chars=0"]), Some(0));
    assert_eq!(kept(&["--set", "ageing.prefix.input_budget=0"]), None);
}

/// Lengths at the limits of the designs, and lengths that a cut would only make longer.
const LENGTHS: [usize; 8] = [501, 520, 2_001, 2_007, 24_001, 24_090, 51_201, 51_300];

/// An output of one line of so many characters.
fn line_of(length: usize) -> String {
    "z".repeat(length)
}

#[test]
fn no_preset_shows_an_output_longer_than_it_came() {
    for preset in trimtab_engine::policy::PRESETS {
        let chatted = Chatted::new(None);
        for length in LENGTHS {
            let name = format!("{length}.txt");
            chatted.file(&name, &line_of(length));
            let read = serde_json::json!({"path": name});
            chatted.answers.say(ScriptedReply::call("read_file", read));
        }
        chatted.answers.report_input(45_000);
        let args = ["--preset", preset.name, "--window", "400000"];
        let told = chatted.chat(&args, "go on\n");
        assert_eq!(told.code, 0, "{}", told.stderr);
        for call in chatted.main_calls() {
            for (shown, length) in outputs(&call).iter().zip(LENGTHS) {
                assert!(shown.len() <= length, "{} {length}: {shown}", preset.name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_shows_no_output_longer_than_it_came() {
    for preset in trimtab_engine::policy::PRESETS {
        let args = ["--preset", preset.name, "--window", "400000"];
        let mut talk = Proxied::start(Dialect::Chat, &args).await;
        talk.answers.report_input(45_000);
        for length in LENGTHS {
            let seen = talk.send_round(&[&line_of(length)]).await;
            for (shown, length) in outputs(&seen).iter().zip(LENGTHS) {
                assert!(shown.len() <= length, "{} {length}: {shown}", preset.name);
            }
        }
    }
}

#[test]
fn name_of_a_design_is_refused() {
    for name in ["InputTokenBudget=0", "INPUT_TOKEN_BUDGET=0"] {
        let chatted = Chatted::new(None);
        let told = chatted.chat(&["--preset", "retention", "--set", name], "go on\n");
        assert_eq!(told.code, 2, "{name}: {}", told.stderr);
        let key = name.split('=').next().unwrap();
        let error = format!("no setting {key}");
        assert!(told.stderr.contains(&error), "{name}: {}", told.stderr);
    }
}
