//! Files that run commands later, or that instruct agents.

use std::path::Path;

/// Names that are protected in any folder: version control, settings of agents and editors, and
/// files that shells, hooks and build services execute.
const PROTECTED_NAMES: &[&str] = &[
    // Version control and its hooks.
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".hg",
    ".jj",
    ".svn",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    // Our own settings.
    "trimtab.toml",
    ".trimtab",
    // Settings and instructions of agents.
    "agent.md",
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".claude",
    ".claude.json",
    ".clinerules",
    ".codex",
    ".continue",
    ".copilot",
    ".cursor",
    ".cursorrules",
    ".gemini",
    ".goosehints",
    ".junie",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".roo",
    ".windsurf",
    ".windsurfrules",
    "opencode.json",
    "opencode.jsonc",
    // Editors and debuggers that run tasks or scripts from an opened folder.
    ".devcontainer",
    ".dir-locals.el",
    ".exrc",
    ".gdbinit",
    ".idea",
    ".lldbinit",
    ".nvim.lua",
    ".nvimrc",
    ".vimrc",
    ".vscode",
    ".zed",
    // Build services.
    ".circleci",
    ".github",
    ".gitlab-ci.yml",
    ".travis.yml",
    "jenkinsfile",
    // Shells, and files they load when a folder is entered or a session starts.
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".envrc",
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    ".profile",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "mise",
    "mise.local.toml",
    "mise.toml",
    // Tools whose settings contain commands, and keys.
    ".cargo",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".gnupg",
    ".ssh",
];

/// True if a file can run commands later or instruct an agent: anything in `.git`, settings of
/// agents, editors and shells, hooks, and `trimtab.toml`. Writing such a file always needs a
/// confirmation.
///
/// ```
/// use trimtab_agent::tools::is_protected;
///
/// assert!(is_protected(".git/hooks/pre-commit".as_ref()));
/// assert!(is_protected("sub/Trimtab.toml".as_ref()));
/// assert!(!is_protected("src/git.rs".as_ref()));
/// ```
pub fn is_protected(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        // Some file systems ignore case, or dots and spaces at the end.
        let name = name.trim_end_matches(['.', ' ']).to_lowercase();
        PROTECTED_NAMES.contains(&name.as_str())
    })
}
