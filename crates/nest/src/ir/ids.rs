//! Identities of what a nest holds: indices into its lists.

/// Index of a [`Buffer`](crate::Buffer) in [`Nest::buffers`](crate::Nest::buffers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// Index of a [`Layer`](crate::Layer) in [`Nest::layers`](crate::Nest::layers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerId(pub u32);

/// Index of a [`Site`](crate::Site) in [`Nest::sites`](crate::Nest::sites).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);
