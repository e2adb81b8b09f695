//! `ov_rank.h`: a rank is an interval, like a dimension.

use crate::dimension::Dimension;

/// Whether the rank is not known.
#[unsafe(no_mangle)]
extern "C" fn ov_rank_is_dynamic(rank: Dimension) -> bool {
    rank.get().is_none()
}
