//! Indices, packed elements, reductions, guards, empty domains.

use crate::common::{Number, bytes, output, pointwise, reference, run, site, values};
use vinelift_nest::{
    Axis, Binary, Fault, Mode, Nest, Policy, Role, Scalar, SiteId, Stage, build::*,
};
use vinelift_tensor::ElementType::{self, *};

const CHECK_OR_ZERO: Policy = Policy {
    negative: false,
    zero: true,
};

/// `y[i] = x[wrap(indices[i], x.len())]`
fn gather(index: ElementType, count: usize, extent: usize, policy: Policy) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I32, &[extent], Role::Input);
    let indices = nest.buffer("indices", index, &[count], Role::Input);
    let y = nest.buffer("y", I32, &[count], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], y, |nest, at| {
        let index = nest.load(indices, at.to_vec());
        let index = nest.wrap(index, extent, policy, site, at.to_vec());
        nest.load(x, vec![index])
    });
    nest
}

fn check_gather<T: Number>(index: i128, convert: fn(i128) -> T) {
    let data: Vec<i32> = (10..15).collect();
    let found = bytes(&[convert(1), convert(index)]);
    let signed = T::TY.is_signed_integer();
    // The values that the type holds count.
    let mut wide = [if signed && found[found.len() - 1] & 128 != 0 {
        255
    } else {
        0
    }; 16];
    let size = found.len() / 2;
    wide[..size].copy_from_slice(&found[size..]);
    let index = i128::from_le_bytes(wide);
    for policy in [
        Policy::WRAP,
        Policy::CHECK,
        Policy::WRAP_OR_ZERO,
        CHECK_OR_ZERO,
    ] {
        let nest = gather(T::TY, 2, 5, policy);
        let low = if policy.negative { -5 } else { 0 };
        let hit = (low..5)
            .contains(&index)
            .then(|| data[(index.rem_euclid(5)) as usize]);
        let inputs = [bytes(&data), found.clone()];
        let (bytes, result) = run(&nest, &inputs);
        let expected = match hit {
            None if !policy.zero => Err(Fault {
                site: SiteId(0),
                position: vec![1],
                index,
                extent: 5,
                negative: policy.negative,
            }),
            _ => Ok(()),
        };
        assert_eq!(result, expected, "{index} of {}", T::TY);
        assert_eq!(
            values::<i32>(&bytes[2]),
            [11, hit.unwrap_or(0)],
            "{index} of {}",
            T::TY
        );
        assert_eq!(reference(&nest, &inputs), (bytes, result));
    }
}

#[test]
fn an_index_counts_by_its_mathematical_value() {
    for index in [
        0, 4, 5, 6, -1, -5, -6, 127, 128, -128, 255, 251, 65535, 65531,
    ] {
        check_gather(index, |i| i as u8);
        check_gather(index, |i| i as i8);
        check_gather(index, |i| i as u16);
        check_gather(index, |i| i as i16);
        check_gather(index, |i| i as u32);
        check_gather(index, |i| i as i32);
        check_gather(index, |i| i as u64);
        check_gather(index, |i| i as i64);
    }
    for index in [
        u64::MAX as i128,
        u64::MAX as i128 - 4,
        1 << 63,
        i64::MAX as i128,
        i64::MIN as i128,
    ] {
        check_gather(index, |i| i as u64);
        check_gather(index, |i| i as i64);
    }
}

#[test]
fn a_packed_index_is_extended() {
    let data = bytes(&(0..8).map(|i| i * 10).collect::<Vec<i32>>());
    // -1, 7, -8, 0 and 15, 7, 8, 0.
    let codes = vec![0x7f, 0x08];
    assert_eq!(
        values::<i32>(&output(
            &gather(I4, 4, 8, Policy::WRAP),
            &[data.clone(), codes.clone()]
        )),
        [70, 70, 0, 0]
    );
    let (_, result) = run(&gather(U4, 4, 8, Policy::WRAP), &[data, codes]);
    assert_eq!(result.unwrap_err().index, 15);
}

#[test]
fn an_empty_dim_has_no_element() {
    let indices = bytes(&[0i64, -1]);
    for policy in [Policy::WRAP_OR_ZERO, CHECK_OR_ZERO] {
        let nest = gather(I64, 2, 0, policy);
        assert_eq!(output(&nest, &[vec![], indices.clone()]), [0; 8]);
    }
    let nest = gather(I64, 2, 0, Policy::WRAP);
    let (_, result) = run(&nest, &[vec![], indices]);
    let fault = result.unwrap_err();
    assert_eq!(
        fault.message(&nest),
        "layer 'g' (Gather, opset8): `indices`[0] is 0, but the dim it indexes is empty"
    );
}

/// `y[:] = 0; y[wrap(indices[i]), j] op= updates[i, j]`
fn scatter(mode: Mode, policy: Policy) -> Nest {
    let mut nest = Nest::new();
    let indices = nest.buffer("indices", I32, &[4], Role::Input);
    let updates = nest.buffer("updates", I32, &[4, 2], Role::Input);
    let y = nest.buffer("y", I32, &[3, 2], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], y, |_, _| integer(100, I32));
    let domain = nest.axes(&[4, 2]);
    let at: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
    let index = nest.load(indices, vec![at[0].clone()]);
    let row = nest.wrap(index, 3, policy, site, vec![at[0].clone()]);
    let value = nest.load(updates, at.clone());
    nest.stages.push(Stage {
        domain,
        target: y,
        at: vec![row, at[1].clone()],
        mode,
        value,
        layers: vec![],
        group: None,
    });
    nest
}

#[test]
fn a_scatter_keeps_its_order() {
    let inputs = |indices: [i32; 4]| [bytes(&indices), bytes(&[1, 2, 3, 4, 5, 6, 7, 8i32])];
    let nest = scatter(Mode::Set, Policy::WRAP);
    assert_eq!(
        values::<i32>(&output(&nest, &inputs([2, 0, -1, 0]))),
        [7, 8, 100, 100, 5, 6]
    );
    let nest = scatter(Mode::Combine(Binary::Add), Policy::WRAP_OR_ZERO);
    assert_eq!(
        values::<i32>(&output(&nest, &inputs([2, 3, -1, 0]))),
        [107, 108, 100, 100, 106, 108]
    );
    let nest = scatter(Mode::Set, Policy::CHECK);
    let (bytes, result) = run(&nest, &inputs([2, 1, -1, 0]));
    assert_eq!(values::<i32>(&bytes[2]), [100, 100, 3, 4, 1, 2]);
    let fault = Fault {
        site: SiteId(0),
        position: vec![2],
        index: -1,
        extent: 3,
        negative: false,
    };
    assert_eq!(result, Err(fault));
}

#[test]
fn a_skipped_point_evaluates_no_value() {
    let mut nest = Nest::new();
    let indices = nest.buffer("indices", I64, &[3], Role::Input);
    let x = nest.buffer("x", I64, &[2], Role::Input);
    let y = nest.buffer("y", I64, &[2], Role::Output);
    let site = site(&mut nest);
    let axis = nest.axis(3);
    let at = Scalar::axis(axis.id);
    let to = nest.load(indices, vec![at.clone()]);
    let to = nest.wrap(to, 2, Policy::WRAP_OR_ZERO, site.clone(), vec![at.clone()]);
    // The same everywhere, and out of range: a fault if any point is not skipped.
    let from = nest.wrap(
        nest.load(indices, vec![index(0)]),
        2,
        Policy::CHECK,
        site,
        vec![index(0)],
    );
    let value = nest.load(x, vec![from]);
    nest.stages.push(Stage {
        domain: vec![axis],
        target: y,
        at: vec![to],
        mode: Mode::Set,
        value,
        layers: vec![],
        group: None,
    });
    let x = bytes(&[5i64, 6]);
    for (indices, faults) in [([7i64, 2, 3], false), ([7, 1, 3], true)] {
        let inputs = [bytes(&indices), x.clone()];
        let (bytes, result) = run(&nest, &inputs);
        assert_eq!(result.is_err(), faults);
        assert_eq!(reference(&nest, &inputs), (bytes, result));
    }
}

/// `y = x`, and `y[i] = x[count - 1 - i]`.
fn check_packed(ty: ElementType, codes: &[u8], packed: &[u8]) {
    let copy = pointwise(&[ty], ty, codes.len(), |x| x[0].clone());
    assert_eq!(output(&copy, &[packed.to_vec()]), packed, "{ty}");
    let reverse = |count: usize| {
        let mut nest = Nest::new();
        let x = nest.buffer("x", ty, &[count], Role::Input);
        let y = nest.buffer("y", ty, &[count], Role::Output);
        nest.define(vec![], y, |nest, at| {
            nest.load(x, vec![index(count as i64 - 1) - &at[0]])
        });
        nest
    };
    let nest = reverse(codes.len());
    let reversed = output(&nest, &[packed.to_vec()]);
    assert_eq!(reversed, reference(&nest, &[packed.to_vec()]).0[1], "{ty}");
    assert_eq!(output(&nest, &[reversed]), packed, "{ty}");
    if ty.is_unsigned_integer() {
        let widen = pointwise(&[ty], U8, codes.len(), |x| x[0].clone().cast(U8));
        assert_eq!(output(&widen, &[packed.to_vec()]), codes, "{ty}");
        let narrow = pointwise(&[U8], ty, codes.len(), |x| x[0].clone().cast(ty));
        assert_eq!(output(&narrow, &[codes.to_vec()]), packed, "{ty}");
    }
}

#[test]
fn packed_elements_lie_where_the_format_says() {
    check_packed(U1, &[1, 0, 0, 0, 0, 0, 0, 0, 1], &[0x80, 0x80]);
    check_packed(U2, &[0, 1, 2, 3, 1], &[0xe4, 0x01]);
    check_packed(U3, &[7, 0, 0, 0, 0, 0, 0, 1], &[0xc0, 0x01, 0x80]);
    check_packed(
        U3,
        &[0, 5, 0, 0, 0, 0, 0, 0, 6],
        &[0x10, 0, 0x40, 0x80, 0, 0x80],
    );
    check_packed(U4, &[0, 1, 2, 3, 4], &[0x10, 0x32, 0x04]);
    check_packed(I4, &[0, 1, 2, 3, 4], &[0x10, 0x32, 0x04]);
    check_packed(F4E2M1, &[0, 1, 2, 3, 4], &[0x10, 0x32, 0x04]);
    check_packed(NF4, &[0, 15, 8], &[0xf0, 0x08]);
    check_packed(U6, &[63, 0, 0, 32], &[0xf0, 0x00, 0xc2]);
}

#[test]
fn a_packed_store_leaves_its_neighbours() {
    for ty in [U1, U2, U3, U4, U6, I4, NF4, F4E2M1] {
        let mut nest = Nest::new();
        let y = nest.buffer("y", ty, &[24], Role::Output);
        nest.define(vec![], y, |_, _| Scalar::constant((1 << ty.bits()) - 1, ty));
        let axis = nest.axis(8);
        let at = vec![Scalar::axis(axis.id) * 3 + 1];
        let value = Scalar::constant(0, ty);
        nest.stages.push(Stage {
            domain: vec![axis],
            target: y,
            at,
            mode: Mode::Set,
            value,
            layers: vec![],
            group: None,
        });
        assert_eq!(output(&nest, &[]), reference(&nest, &[]).0[0], "{ty}");
    }
}

#[test]
fn copies_keep_every_bit() {
    for ty in ElementType::ALL {
        let data: Vec<u8> = (0..ty.byte_len(48).unwrap())
            .map(|i| (i * 37 + 11) as u8)
            .collect();
        let nest = pointwise(&[ty], ty, 48, |x| x[0].clone());
        let expected = match ty {
            Boolean => data.iter().map(|&b| u8::from(b != 0)).collect(),
            _ => data.clone(),
        };
        assert_eq!(output(&nest, &[data]), expected, "{ty}");
    }
    let nest = pointwise(&[String, String], Boolean, 2, |x| x[0].eq(x[1].clone()));
    assert_eq!(
        output(&nest, &[bytes(&[1u64, 2]), bytes(&[1u64, 1 << 40])]),
        [1, 0]
    );
}

fn reduce(shape: &[usize], over: &[Axis], nest: &mut Nest, op: Binary) -> Vec<u8> {
    let y = nest.buffer("y", I64, shape, Role::Output);
    let body = over
        .iter()
        .fold(index(1), |sum, axis| sum * 3 + Scalar::axis(axis.id));
    nest.define(vec![], y, |_, at| {
        let outer = at.iter().fold(index(0), |sum, i| sum * 10 + i);
        Scalar::reduce(op, over.to_vec(), index(5), body) + outer * 1000
    });
    let found = output(nest, &[]);
    assert_eq!(found, reference(nest, &[]).0[0], "{nest}");
    found
}

#[test]
fn reductions_over_any_number_of_points() {
    for (shape, over) in [
        (&[][..], &[4][..]),
        (&[], &[]),
        (&[], &[1, 1]),
        (&[2, 3], &[2, 1, 3]),
        (&[2, 1], &[3, 0, 2]),
        (&[0, 3], &[2]),
        (&[3], &[0]),
    ] {
        for op in [Binary::Add, Binary::Max, Binary::Sub, Binary::Rem] {
            let mut nest = Nest::new();
            let over = nest.axes(over);
            reduce(shape, &over, &mut nest, op);
        }
    }
    let mut nest = Nest::new();
    let over = nest.axes(&[0]);
    assert_eq!(
        values::<i64>(&reduce(&[2], &over, &mut nest, Binary::Add)),
        [5, 1005]
    );
}

#[test]
fn a_reduction_in_a_reduction_and_under_a_guard() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[3, 4], Role::Input);
    let y = nest.buffer("y", F32, &[3, 4], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let (k, l, m) = (nest.axis(4), nest.axis(3), nest.axis(1));
        let row = |nest: &Nest, i: Scalar, k: Axis| nest.load(x, vec![i, Scalar::axis(k.id)]);
        let inner = Scalar::reduce(
            Binary::Add,
            vec![l],
            number(0.0, F32),
            nest.load(x, vec![Scalar::axis(l.id), Scalar::axis(k.id)]),
        );
        let sum = Scalar::reduce(
            Binary::Add,
            vec![k, m],
            number(1.0, F32),
            row(nest, at[0].clone(), k) * inner,
        );
        // The sum is shared by a guarded and an unguarded use, and by two guards.
        let x = nest.load(x, at.to_vec());
        let (odd, first) = (x.gt(number(0.0, F32)), x.lt(number(2.0, F32)));
        select(odd, &sum + 1.0, number(7.0, F32)) * select(first, sum.clone(), number(2.0, F32))
            + number(0.5, F32)
    });
    let data = vec![bytes(
        &(0..12).map(|i| i as f32 - 4.0).collect::<Vec<f32>>(),
    )];
    assert_eq!(output(&nest, &data), reference(&nest, &data).0[1]);
}

#[test]
fn a_guarded_load_is_not_evaluated() {
    // Pad with a mile on either side: the load would leave the memory of the process.
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[2], Role::Input);
    let y = nest.buffer("y", F32, &[4], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let i = (&at[0] - 1) * (1 << 50) + &at[0] - 1;
        let shifted = &at[0] * (1 << 50) - (1i64 << 50);
        let inside = inside(&i, 0, 2) & inside(&shifted, 0, 2);
        select(inside, nest.load(x, vec![i]), number(9.0, F32))
    });
    assert_eq!(
        values::<f32>(&output(&nest, &[bytes(&[1f32, 2.0])])),
        [9.0, 1.0, 9.0, 9.0]
    );

    // A guard keeps an index from failing.
    let mut nest = gather(I64, 3, 5, Policy::CHECK);
    let stage = nest.stages.remove(0);
    let load = nest.load(
        vinelift_nest::BufferId(1),
        vec![Scalar::axis(stage.domain[0].id)],
    );
    let value = select(load.lt(index(5)), stage.value.clone(), integer(-1, I32));
    nest.stages.push(Stage { value, ..stage });
    let data = bytes(&[1, 2, 3, 4, 5i32]);
    assert_eq!(
        values::<i32>(&output(&nest, &[data.clone(), bytes(&[4i64, 5, 0])])),
        [5, -1, 1]
    );
    assert_eq!(
        run(&nest, &[data, bytes(&[4i64, 5, -1])])
            .1
            .unwrap_err()
            .position,
        [2]
    );
}

#[test]
fn a_stage_sees_what_it_has_written() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I32, &[2, 5], Role::Input);
    let y = nest.buffer("y", I32, &[2, 5], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let before = nest.load(y, vec![at[0].clone(), &at[1] - 1]);
        // The last element of the row above, the same for the whole row but written before it.
        let above = nest.load(y, vec![&at[0] - 1, index(4)]);
        let sum = select(at[1].ge(index(1)), before, integer(0, I32));
        nest.load(x, at.to_vec()) + sum + select(at[0].ge(index(1)), above, integer(0, I32))
    });
    let data = [bytes(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10i32])];
    assert_eq!(output(&nest, &data), reference(&nest, &data).0[1]);
}

#[test]
fn one_operand_of_many_functions_is_computed_once() {
    // 2^60 additions if sharing were lost.
    let mut nest = Nest::new();
    let x = nest.buffer("x", I64, &[3], Role::Input);
    let y = nest.buffer("y", I64, &[3], Role::Output);
    nest.define(vec![], y, |nest, at| {
        (0..60).fold(nest.load(x, at.to_vec()), |sum, _| &sum + &sum)
    });
    assert_eq!(
        values::<i64>(&output(&nest, &[bytes(&[1i64, 2, 16])])),
        [1 << 60, 1 << 61, 0]
    );

    // The same through selects that guard loads on both sides.
    let mut nest = Nest::new();
    let y = nest.buffer("y", I64, &[3], Role::Output);
    let x = nest.buffer("x", I64, &[3], Role::Input);
    nest.define(vec![], y, |nest, at| {
        let load = nest.load(x, at.to_vec());
        // Not known before the first select, but needed by both of its sides.
        let other = nest.load(x, vec![index(2) - &at[0]]);
        let first = select(load.lt(index(2)), &other + 1, &other * 2);
        (0..40).fold(first, |x, k| select(load.lt(index(k % 3)), &x + 1, &x * 3))
    });
    let data = [bytes(&[1i64, 2, 3])];
    assert_eq!(run(&nest, &data).0, reference(&nest, &data).0);
}

#[test]
fn a_nest_of_many_ranks_and_a_scalar() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", I16, &[2, 1, 3, 1, 2, 2], Role::Input);
    let y = nest.buffer("y", I16, &[2, 3, 2, 2, 1], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|k| &at[k]);
        nest.load(
            x,
            vec![
                d.clone(),
                e.clone(),
                index(2) - b,
                e.clone(),
                a.clone(),
                c.clone(),
            ],
        )
    });
    let data = [bytes(&(0..24).collect::<Vec<i16>>())];
    assert_eq!(output(&nest, &data), reference(&nest, &data).0[1]);

    let mut nest = Nest::new();
    let x = nest.buffer("x", F64, &[0usize; 0], Role::Input);
    let y = nest.buffer("y", F64, &[0usize; 0], Role::Output);
    nest.define(vec![], y, |nest, at| nest.load(x, at.to_vec()) * 2.0);
    assert_eq!(values::<f64>(&output(&nest, &[bytes(&[1.5f64])])), [3.0]);
}

#[test]
fn tables_are_part_of_the_code() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", U8, &[4], Role::Input);
    let table = nest.table("squares", U32, 4, &bytes(&[0u32, 1, 4, 9]));
    let same = nest.table("again", U32, 4, &bytes(&[0u32, 1, 4, 9]));
    let y = nest.buffer("y", U32, &[4], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let i = nest.load(x, at.to_vec()).cast(I64).rem(index(4));
        nest.load(table, vec![i.clone()]) * 10 + nest.load(same, vec![i])
    });
    assert_eq!(
        values::<u32>(&output(&nest, &[vec![3, 1, 2, 6]])),
        [99, 11, 44, 44]
    );
}
