//! Roles of callers.

use std::fmt;

/// What a caller may do. Each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallerRole {
    /// Nothing.
    None,
    /// Read everything.
    Viewer,
    /// Create, stop and mark runs, pause jobs, drain nodes, reread job files, and perform tasks.
    Operator,
    /// Everything, including changes of jobs and new tokens.
    Admin,
}

impl CallerRole {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::None, Self::Viewer, Self::Operator, Self::Admin];

    /// The name of the role.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl fmt::Display for CallerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
