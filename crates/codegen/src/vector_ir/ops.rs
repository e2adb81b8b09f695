//! The operations of vector loops.
//!
//! Unless an operation says otherwise, its operands and its result are of the instruction's type `ty`.

use vinelift_nest::{Binary, Unary};
use vinelift_tensor::ElementType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// `to =` these bits in all lanes.
    Constant(u64),
    /// `to =` the argument of this number in all lanes.
    Argument(u32),
    /// `to =` the argument of this number, whose bits are all zero or all one, as a mask.
    MaskArgument(u32),

    /// `to =` the points of the lane axis that the lanes are at, counted on from the argument of this number if there is one.
    /// Of functions alone.
    Points(Option<u32>),

    /// `to =` neighbours in memory.
    Load(Access),
    /// `to =` one element of memory in all lanes.
    LoadUniform(Access),
    /// `to =` elements this many apart in memory; nothing behind the last is read.
    LoadStrided(Access, i32),
    /// `to =` the scalar of this number among those that the kernel computes, at the points of the lanes.
    Scalar(u32),
    /// `memory = x`, neighbours.
    Store(Access),
    /// Has the cache fetch the line of an address, which need not be mapped.
    Prefetch(Access),

    /// `x + y`; integers wrap.
    Add,
    /// `x - y`; integers wrap.
    Sub,
    /// `x · y`; integers wrap.
    Mul,
    /// The upper half of `x · y` of `u64`.
    MulHigh,
    /// `x / y` of floats.
    Div,
    /// `x < y ? x : y`: of floats `y` if one is NaN or both are zeros.
    Min,
    /// `x > y ? x : y`: of floats `y` if one is NaN or both are zeros.
    Max,
    /// `x · y + z` of floats, rounded once.
    MulAdd,
    /// `-x`; of floats the other sign, also of NaN and zero.
    Neg,
    /// `|x|`; of floats without the sign, also of NaN; the smallest integer stays.
    Abs,
    /// Correctly rounded.
    Sqrt,
    /// To the nearest whole number, halfway to the even one.
    Round,
    Floor,
    Ceil,
    Trunc,

    /// On bits or masks, as the three below.
    And,
    Or,
    Xor,
    Not,
    /// `x · 2ⁿ`, modulo the width of a lane.
    ShiftLeft(u8),
    /// `⌊x / 2ⁿ⌋`, signed if the type is.
    ShiftRight(u8),
    /// `to =` the mask of the lanes where `x` and `y` compare so; of masks, false is less than true.
    Compare(Comparison),
    /// `to =` the mask of the lanes that are not zero; NaN is not.
    IsNonZero,
    /// `x ? y : z`, `x` a mask.
    Select,
    /// `x ?` these bits `: 0`, `x` a mask.
    MaskedConstant(u64),

    /// `x`, of type `from`, as a `ty`: integers keep their low bits and widen by the sign of `from`; floats that
    /// have no `i32` or `i64` become the smallest one.
    Convert {
        from: ElementType,
    },

    /// As the scalar operation, lane by lane.
    ByLane(LaneOp),

    /// Finds out whether the mask `x` has any lanes, for the steps that follow and are skipped if it has none.
    HasLanes,

    /// A new value that starts as `x`. Later instructions may write it.
    Variable,

    /// Checks the indices of a turn, which lie side by side in memory from the access on; `ty` is theirs. The
    /// gathers and look-ups that follow use them.
    CheckIndices(IndexCheck),
    /// `to =` the elements where the indices say that have been checked.
    Gather(Gather),
    /// `to =` a short row of neighbours, not by lanes but whole, for look-ups.
    LoadTable {
        access: Access,
        extent: u32,
    },
    /// `to =` the elements of the table `x` whose numbers are the checked indices, of `index_bytes` bytes each.
    TableLookup {
        index_bytes: u8,
    },
}

/// A scalar operation for which there is none on lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneOp {
    Unary(Unary),
    /// With the bits of `y` if it is a constant.
    Binary(Binary, Option<u64>),
    /// From this type.
    Cast(ElementType),
}

/// How two numbers compare; false where one is NaN, but for `NotEqual`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Elements in memory, from a pointer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The number of the argument that is the pointer.
    pub(crate) pointer: u32,
    /// Bytes from lane to lane, 0 if all read the same.
    pub(crate) step: u8,
    pub(crate) offset: i32,
}

/// Elements that lie where indices say, in bytes: that of the turn's lane `l` at `access + row · row_bytes +
/// column · column_bytes + index[l] · index_step`; `column` is `l` alone, or `l = row · columns + column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gather {
    pub(crate) access: Access,
    /// Bytes of an index.
    pub(crate) index_bytes: u8,
    pub(crate) index_step: i32,
    pub(crate) column_bytes: u8,
    pub(crate) row_bytes: i32,
    /// 0 if all lanes are of one row. Turns begin with a row, and have whole ones.
    pub(crate) columns: u8,
}

/// How the indices of a turn are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexCheck {
    pub(crate) access: Access,
    /// Indices must be below this.
    pub(crate) extent: u64,
    pub(crate) compared: Compared,
    /// Whether an index less than zero counts from the end.
    pub(crate) negative: bool,
}

/// When an index is compared with its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Never: it comes from a table that has none out of range.
    Never,
    /// When all of a turn are checked, by vectors. Not for gathers: by then, memory may hold another index.
    ByVectors,
    /// When it has been loaded to be used, with this extent. Gathers, and nothing else, must follow the check.
    WhenUsed(i32),
}

impl Op {
    /// The type of an operand, by its number, of the operation that is of type `ty`.
    pub(crate) fn operand_type(self, number: usize, ty: ElementType) -> ElementType {
        match self {
            Op::Convert { from } | Op::ByLane(LaneOp::Cast(from)) => from,
            Op::MaskedConstant(_) => ElementType::Boolean,
            Op::Select if number == 0 => ElementType::Boolean,
            _ => ty,
        }
    }

    /// The operation of two operands that computes `op` in every lane.
    pub(crate) fn of_binary(op: Binary) -> Option<Op> {
        Some(match op {
            Binary::Add => Op::Add,
            Binary::Sub => Op::Sub,
            Binary::Mul => Op::Mul,
            Binary::Div => Op::Div,
            Binary::Min => Op::Min,
            Binary::Max => Op::Max,
            Binary::And => Op::And,
            Binary::Or => Op::Or,
            Binary::Xor => Op::Xor,
            Binary::Eq => Op::Compare(Comparison::Equal),
            Binary::Ne => Op::Compare(Comparison::NotEqual),
            Binary::Lt => Op::Compare(Comparison::Less),
            Binary::Le => Op::Compare(Comparison::LessOrEqual),
            Binary::Gt => Op::Compare(Comparison::Greater),
            Binary::Ge => Op::Compare(Comparison::GreaterOrEqual),
            _ => return None,
        })
    }

    /// The shift of numbers of type `ty` by the constant `y`.
    pub(crate) fn of_shift(op: Binary, ty: ElementType, y: Option<u64>) -> Option<Op> {
        let amount = y.filter(|y| *y < ty.bits() as u64 && ty != ElementType::Boolean)?;
        match op {
            Binary::Shl => Some(Op::ShiftLeft(amount as u8)),
            Binary::Shr => Some(Op::ShiftRight(amount as u8)),
            _ => None,
        }
    }

    /// The operation of one operand that computes `op` in every lane.
    pub(crate) fn of_unary(op: Unary) -> Option<Op> {
        Some(match op {
            Unary::Not => Op::Not,
            Unary::Neg => Op::Neg,
            Unary::Abs => Op::Abs,
            Unary::Sqrt => Op::Sqrt,
            Unary::Round => Op::Round,
            Unary::Floor => Op::Floor,
            Unary::Ceil => Op::Ceil,
            Unary::Trunc => Op::Trunc,
            _ => return None,
        })
    }
}

impl Comparison {
    /// The comparison that the operands have the other way round.
    pub(crate) fn mirrored(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }
}

/// Bytes of a lane of that type.
pub(crate) fn lane_bytes(ty: ElementType) -> u8 {
    ty.bits().div_ceil(8) as u8
}

/// The unsigned integer type of `bytes` bytes.
pub(crate) fn unsigned(bytes: u8) -> ElementType {
    match bytes {
        1 => ElementType::U8,
        2 => ElementType::U16,
        4 => ElementType::U32,
        _ => ElementType::U64,
    }
}

/// Whether numbers of that type are floats that vectors compute with.
pub(crate) fn is_float(ty: ElementType) -> bool {
    matches!(ty, ElementType::F32 | ElementType::F64)
}

/// Whether all of that type are integers of whole bytes.
pub(crate) fn is_whole_integer(ty: ElementType) -> bool {
    ty.is_integer() && !ty.is_packed()
}

/// The operations of one operand, and their types, that one after the other cast `from` to `to`; `None` if there are
/// none.
pub(crate) fn cast_steps(from: ElementType, to: ElementType) -> Option<Vec<(Op, ElementType)>> {
    use ElementType::*;
    let is_narrow = is_whole_integer(from) && lane_bytes(from) < 4;
    Some(match (from, to) {
        _ if from == to => vec![],
        (Boolean, F32) => vec![(Op::MaskedConstant(1f32.to_bits().into()), to)],
        (Boolean, F64) => vec![(Op::MaskedConstant(1f64.to_bits()), to)],
        (Boolean, _) if is_whole_integer(to) => vec![(Op::MaskedConstant(1), to)],
        (_, Boolean) if is_whole_integer(from) || is_float(from) => vec![(Op::IsNonZero, from)],
        (Boolean, _) | (_, Boolean) => return None,
        // From 2³¹ on, the low byte is 0; so is that of `i32::MIN`, to which the conversion takes floats that fit no `i32`.
        (F32, I8 | U8) => vec![(Op::Convert { from }, I32), (Op::Convert { from: I32 }, to)],
        // All narrower integers are exact in `i32`.
        _ if is_narrow && !is_whole_integer(to) => {
            vec![(Op::Convert { from }, I32), (Op::Convert { from: I32 }, to)]
        }
        _ => vec![(Op::Convert { from }, to)],
    })
}
