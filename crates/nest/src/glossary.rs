//! Terms, one meaning each, in code, documentation and text of all crates.
//!
//! # The loop-nest IR
//! * **nest**: a list of stages over buffers ([`Nest`](crate::Nest)).
//! * **stage**: `for every point of domain: target[at] (op)= value` ([`Stage`](crate::Stage)).
//! * **axis**: a loop variable over `0..extent` ([`Axis`](crate::Axis)); a *dim* is one of a buffer.
//! * **symbol**: a number that only a run gives; **formula**: a polynomial over symbols; **extent**: a number of points,
//!   or a formula for it with its value at the **example**, the shapes that a nest was first made for
//!   ([`Extent`](vinelift_tensor::Extent)).
//! * **bind**: to put numbers in place of symbols ([`Nest::bound_to`](crate::Nest::bound_to)); **pin**: to make a nest
//!   for one number of a symbol alone; **class**: the shapes that one nest with symbols serves.
//! * **domain**: the axes of a stage, outermost first; a *point* is one value of each.
//! * **scalar**: a pure expression evaluated at a point ([`Scalar`](crate::Scalar)).
//! * **fold**: `init op body op body …` over axes ([`Kind::Reduce`](crate::Kind::Reduce)).
//! * **term**: a product that a sum takes in with one rounding, `acc = fma(x, y, acc)`
//!   ([`Binary::Term`](crate::Binary::Term)).
//! * **wrap**: a data-dependent index, checked against an extent ([`Wrap`](crate::Wrap)); its *policy* says whether it
//!   counts negatives from the end, and whether it faults or reads zero out of range.
//! * **fault**: the end of a run at an index out of range ([`Fault`](crate::Fault)).
//! * **guard**: the condition of a select around a load or wrap, which proves its index.
//! * **fold bounds**: where the guard of a fold holds, if its ends are data; other points are not visited
//!   ([`FoldBounds`](crate::FoldBounds)).
//! * **rarely**: a mark on the condition of a select ([`Unary::Rarely`](crate::Unary::Rarely)): what it takes where the condition
//!   holds is skipped by code where no lane does.
//! * **turn**: one point of the outermost axis; stages of one [group](crate::Stage::group) run turn by turn, one after
//!   the other, as the stages of a recurrent step do.
//! * **kernel**: stages compiled to one native function; a **sub-nest** is the nest that holds just these
//!   ([`SubNest`](crate::SubNest)).
//!
//! # Analyses
//! * **range**: an interval that holds all values of an index ([`Ranges`](crate::Ranges)).
//! * **value range**: an interval that holds all values of an element ([`ValueRange`](crate::ValueRange)).
//! * **linear form**: `constant + Σ coefficient · atom`; *affine* if all atoms are axes.
//! * **effects**: the buffers that stages load, write and combine with ([`Effects`](crate::Effects)).
//! * **alias**: two buffers that are the same memory ([`Aliases`](crate::Aliases)).
//! * **injective**: no two points write the same element; by strides, each stride exceeds the reach of the smaller
//!   ones, `s_d > Σ_{e<d} s_e · (n_e - 1)` ([`vinelift_tensor::is_injective`]).
//! * **parallel chunk**: a range of a nest's outermost loop that may run beside others
//!   ([`ParallelChunks`](crate::ParallelChunks)).
//! * **footprint**: the elements of a buffer that each chunk uses, `k·step + low ..= k·step + high`
//!   ([`Footprint`](crate::Footprint)).
//! * **scan**: a stage whose points read the element of the point before, `y[i] = f(y[i - 1], …)`
//!   ([`Scan`](crate::Scan)).
//! * **contraction**: `out[b, m, n] = Σ_k left[b, m, k] · right[b, k, n]` ([`Contraction`](crate::Contraction)).
//! * **operand**: a tensor that a contraction reads; a *factor* is an operand's element in the product.
//! * **coded**: stored as numbers of fewer bits, `element = (f32(number) - zero) · scale`
//!   ([`Coding`](crate::Coding)).
//! * **epilogue**: the part of a stage after its contraction, as a bias or an activation.
//!
//! # Passes
//! * **micro-batch**: a few images of a batch, for which a nest is run before the next few ([`Batch`](crate::Batch)); a *slice* is
//!   what an image has of a buffer.
//! * **dead point**: a point of a definition whose element nothing reads, as every second one before a convolution of 1×1 with
//!   strides ([`dead_points`](crate::dead_points())).
//! * **dead tap**: a point of a window that sees padding alone, wherever the window is ([`dead_taps`](crate::dead_taps())).
//! * **fuse**: put a stage's value in place of the loads of its target ([`fuse`](crate::fuse())).
//! * **partial folds**: `op_k x[k] = op_l t[l]`, `t[l] = op_j x[j·L + l]`: `L` folds side by side, of which the last take
//!   in the last points, fewer than `L` ([`partial_folds`](crate::partial_folds())).
//! * **constant indices**: indices known when the nest is made, as tables of offsets
//!   ([`constant_indices`](crate::constant_indices())).
//! * **in-place**: write the copy of a temporary that dies instead of the temporary.
//! * **guard to index**: `select(c, x[i], 0)` as `x[select(c, i, out of range)]`.
//! * **peel**: run the interior of a domain, where all guards hold, apart from its borders.
//! * **trim**: remove the points of a fold at which its guard fails.
//! * **pad**: store an operand with its borders filled in, so that windows need no guards.
//! * **strip-mine**: make two loops of one, of which the inner one has a fixed number of points.
//! * **channels last**: order the dims of a picture so that its channels are the innermost
//!   ([`channels_last`](crate::channels_last()), [`gathered_channels_last`](crate::gathered_channels_last())).
//! * **halo**: the border around a picture, stored with it, that windows read beyond its edges.
//! * **flatten**: merge neighbouring dims of a buffer, `[m, n]` → `[m·n]`.
//! * **collapse**: merge neighbouring axes of a domain, `i<m, j<n` → `k<m·n`.
//! * **coalesce**: make one loop of the two outermost of a stage, as the other stages of its kernel have it, so that it is cut
//!   into more chunks.
//! * **legalize**: replace functions by definitions in primitive operations ([`legalize`](crate::legalize())).
//! * **journal**: elements and offsets that an update overwrites, to undo it if the run fails
//!   ([`Journal`](crate::Journal)).
//!
//! # Running
//! * **lane axis**: the axis along which the lanes of a vector are neighbouring points.
//! * **vector loop**: a loop over the lane axis, one vector of points a turn.
//! * **unroll-and-jam**: unroll an outer loop and merge the copies of the inner one, so that they share loads.
//! * **tile**: the block of results that a micro-kernel keeps in registers, `h` rows by `n` vectors.
//! * **pack**: copy an operand into the order in which tiles read it; a **panel** is the packed part for one tile.
//! * **producer–consumer fusion**: chunks of a kernel run in the tasks of the kernel before it, as soon as the elements
//!   of their footprints are complete ([`Effects::may_overlap`](crate::Effects::may_overlap)).
//! * **chain**: a contraction, code and another contraction that run task by task, as attention does; a **window** is the
//!   part of a temporary between them that one task of a thread uses.
