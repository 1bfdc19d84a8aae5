//! Settings of the designs where they are set: for the proxy, for chat, and in the environment.

use trimtab_model::Dialect;

use crate::chatted::Chatted;
use crate::proxied::Proxied;
use crate::scripted::{main_calls, outputs};
use crate::talk::log;
use trimtab_testkit::script::ScriptedReply;

#[tokio::test(flavor = "multi_thread")]
async fn window_of_the_settings_holds_in_the_proxy() {
    for args in [
        ["--preset", "steady", "--set", "window=9000"],
        ["--preset", "turns", "--set", "ContextWindow=9000"],
        ["--preset", "turns", "--set", "MaxTokens=2250"],
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
fn outputs_in_chat(variables: &[(&str, &str)]) -> Vec<String> {
    let chatted = Chatted::new(None);
    chatted.file("a.txt", &"word ".repeat(600));
    for _ in 0..3 {
        let read = serde_json::json!({"path": "a.txt"});
        chatted.answers.say(ScriptedReply::call("read_file", read));
    }
    chatted.answers.report_input(45_000);
    let args = ["--preset", "retention", "--window", "200000"];
    let told = chatted.chat_with(variables, &args, "go on\n");
    assert_eq!(told.code, 0, "{}", told.stderr);
    outputs(main_calls(&chatted.upstream).last().unwrap())
}

#[test]
fn chat_takes_the_names_of_a_design_from_the_environment() {
    let is_cut = |text: &String| text.contains("[truncated for context management]");
    assert!(outputs_in_chat(&[]).iter().any(is_cut));
    let switched_off = [("INPUT_TOKEN_BUDGET", "0")];
    assert!(!outputs_in_chat(&switched_off).iter().any(is_cut));
}
