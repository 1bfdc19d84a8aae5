//! Wrong input: a clear error with a hint and the right exit code.

use std::net::TcpListener;

use crate::run::{Place, golden};

#[test]
fn missing_model_is_an_error() {
    let place = Place::new();
    golden("no_model.txt", &place, &place.chat(&["--print", "hello"]));
}

#[test]
fn missing_key_is_an_error() {
    let place = Place::new();
    for (model, variable) in [
        ("gpt-4o", "OPENAI_API_KEY"),
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    ] {
        let outcome = place.chat(&["--model", model, "--print", "hello"]);
        assert_eq!(outcome.code, 2);
        let told = &outcome.stderr;
        assert!(told.contains(variable) && told.contains("hint:"), "{told}");
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn wrong_arguments_exit_with_2() {
    let place = Place::new();
    let good = place.script(r#"[{"text": "hello"}]"#);
    let missing = format!("scripted:{}", place.path().join("nowhere.json").display());
    let cases: [(&[&str], &str); 12] = [
        (&["--model", &missing, "--print", "x"], "nowhere.json"),
        (&["--model", &good, "--print", " "], "the prompt is empty"),
        (&["--model", &good, "--print", "-"], "the prompt is empty"),
        (
            &["--model", &good, "--preset", "stead", "--print", "x"],
            "stead",
        ),
        (
            &["--model", &good, "--workspace", "/nowhere", "--print", "x"],
            "/nowhere",
        ),
        (
            &["--model", &good, "--window", "many", "--print", "x"],
            "not a number of tokens",
        ),
        (
            &[
                "--model",
                &good,
                "--window",
                "1k",
                "--max-output",
                "2k",
                "--print",
                "x",
            ],
            "no room",
        ),
        (
            &["--model", "m", "--base-url", "nonsense", "--print", "x"],
            "bad base URL",
        ),
        (&["--model", &good, "--json"], "--json requires"),
        (&["--resume", "--print", "x"], "no session to resume"),
        (
            &["--resume", "chat-19700101", "--print", "x"],
            "no session 'chat-19700101'",
        ),
        (
            &["--model", "gpt-4o", "--dialect", "morse", "--print", "x"],
            "morse",
        ),
    ];
    for (args, part) in cases {
        let outcome = place.chat(args);
        let told = &outcome.stderr;
        assert_eq!(outcome.code, 2, "{args:?}: {told}");
        assert!(told.contains(part), "{args:?}: {told}");
        assert_eq!(outcome.stdout, "", "{args:?}");
    }
}

#[test]
fn invalid_script_is_an_error() {
    let place = Place::new();
    for (script, part) in [
        ("{", "not JSON"),
        ("[{}]", "reply 1"),
        ("[{\"txt\": \"\"}]", "txt"),
    ] {
        let model = place.script(script);
        let outcome = place.chat(&["--model", &model, "--print", "hello"]);
        assert_eq!(outcome.code, 2, "{script}");
        assert!(
            outcome.stderr.contains(part),
            "{script}: {}",
            outcome.stderr
        );
        assert!(
            outcome.stderr.contains("hint:"),
            "{script}: {}",
            outcome.stderr
        );
    }
}

/// The address of a port that nobody listens at.
fn unreachable() -> String {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    format!("http://{port}/v1")
}

#[test]
fn unknown_model_exits_with_1() {
    let place = Place::new();
    let base = unreachable();
    let args = ["--model", "m", "--base-url", &base, "--window", "8k"];
    let outcome = place.chat(&[&args[..], &["--print", "hello"]].concat());
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("cannot reach"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("hint:"), "{}", outcome.stderr);
    let json = place.chat(&[&args[..], &["--print", "hello", "--json"]].concat());
    let last = json.stdout.lines().last().unwrap();
    assert!(
        last.contains(r#""type":"error""#) && last.contains("cannot reach"),
        "{last}"
    );
    assert_eq!(json.code, 1);
}

#[test]
fn conversation_continues_after_an_error() {
    let place = Place::new();
    let base = unreachable();
    let good = place.script(r#"[{"text": "here I am"}]"#);
    let args = ["--model", "m", "--base-url", &base, "--window", "8k"];
    let input = format!("hello\n/model no-such-model\n/model {good}\nhello?\n/contxt\n/quit\n");
    let outcome = place.chat_with(&args, &input);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("cannot reach"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("OPENAI_API_KEY"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("did you mean /context?"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stdout.contains("here I am"), "{}", outcome.stdout);
}
