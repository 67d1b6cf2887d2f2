//! Pages, by subject. Each has its template in `templates/`.

pub(crate) mod approval;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod catalog;
pub(crate) mod failure;
pub(crate) mod freeze;
pub(crate) mod grants;
pub(crate) mod limit_use;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod overview;
pub(crate) mod people;
pub(crate) mod policies;
pub(crate) mod policy;
pub(crate) mod proof;
pub(crate) mod servers;
pub(crate) mod sessions;
pub(crate) mod styles;
pub(crate) mod token;
pub(crate) mod tool;
pub(crate) mod tools;
