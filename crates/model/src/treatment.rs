//! What plans may do with each type of part that the providers' APIs define.

/// What plans may do with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It may be shortened, or shown as something else.
    Edit,
    /// It stays as it came, and goes only with its round. Unknown types are among these.
    WithRound,
    /// It stays as it came, and its round is never hidden: the model would lose a tool or a file
    /// that it has loaded.
    Always,
    /// Like `Always`; the provider ignores everything before the newest one.
    Boundary,
    /// It controls the request and is no part of the conversation. Treated like `WithRound`.
    Pass,
}

use Treatment::{Always, Boundary, Edit, Pass, WithRound};

/// The parts of Chat Completions.
pub const CHAT_PARTS: &[(&str, Treatment)] = &[
    ("text", Edit),
    ("image_url", Edit),
    ("input_audio", Edit),
    ("file", Edit),
    ("function", Edit),
    ("custom", Edit),
    ("refusal", WithRound),
];

/// The blocks of Messages.
pub const MESSAGES_BLOCKS: &[(&str, Treatment)] = &[
    ("text", Edit),
    ("image", Edit),
    ("document", Edit),
    ("tool_use", Edit),
    ("tool_result", Edit),
    ("thinking", WithRound),
    ("redacted_thinking", WithRound),
    ("search_result", WithRound),
    ("server_tool_use", WithRound),
    ("web_search_tool_result", WithRound),
    ("web_fetch_tool_result", WithRound),
    ("code_execution_tool_result", WithRound),
    ("bash_code_execution_tool_result", WithRound),
    ("text_editor_code_execution_tool_result", WithRound),
    ("mcp_tool_use", WithRound),
    ("mcp_tool_result", WithRound),
    ("tool_search_tool_result", Always),
    ("tool_reference", Always),
    ("tool_addition", Always),
    ("tool_removal", Always),
    ("container_upload", Always),
    ("compaction", Boundary),
];

/// The items of Responses, and the parts of their content.
pub const RESPONSES_ITEMS: &[(&str, Treatment)] = &[
    ("message", Edit),
    ("text", Edit),
    ("input_text", Edit),
    ("output_text", Edit),
    ("input_image", Edit),
    ("input_file", Edit),
    ("input_audio", Edit),
    ("function_call", Edit),
    ("function_call_output", Edit),
    ("custom_tool_call", Edit),
    ("custom_tool_call_output", Edit),
    ("local_shell_call", Edit),
    ("local_shell_call_output", Edit),
    ("shell_call", Edit),
    ("shell_call_output", Edit),
    ("apply_patch_call", Edit),
    ("apply_patch_call_output", Edit),
    ("computer_call", Edit),
    ("computer_call_output", Edit),
    ("reasoning", WithRound),
    ("refusal", WithRound),
    ("computer_screenshot", WithRound),
    ("program", WithRound),
    ("program_output", WithRound),
    ("web_search_call", WithRound),
    ("file_search_call", WithRound),
    ("code_interpreter_call", WithRound),
    ("image_generation_call", WithRound),
    ("mcp_call", WithRound),
    ("mcp_list_tools", WithRound),
    ("mcp_approval_request", WithRound),
    ("mcp_approval_response", WithRound),
    ("tool_search_call", Always),
    ("tool_search_output", Always),
    ("additional_tools", Always),
    ("compaction", Boundary),
    ("compaction_summary", Boundary),
    ("compaction_trigger", Pass),
    ("item_reference", Pass),
];

/// What plans may do with a part of this type, in any dialect.
///
/// ```
/// use trimtab_model::{Treatment, treatment};
///
/// assert_eq!(treatment("tool_result"), Treatment::Edit);
/// assert_eq!(treatment("a_type_of_next_year"), Treatment::WithRound);
/// ```
pub fn treatment(type_name: &str) -> Treatment {
    let all = [MESSAGES_BLOCKS, RESPONSES_ITEMS, CHAT_PARTS];
    let mut all = all.into_iter().flatten();
    all.find(|(known, _)| *known == type_name)
        .map_or(WithRound, |(_, treatment)| *treatment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_has_the_same_treatment_in_every_dialect() {
        for (type_name, expected) in [CHAT_PARTS, MESSAGES_BLOCKS, RESPONSES_ITEMS].concat() {
            assert_eq!(treatment(type_name), expected, "{type_name}");
        }
    }
}
