//! Where tiles get their rows from, on both sides of each threshold: the sums are the same bits.

use vinelift_kernels::{Contraction, Dim, Element, Form, Isa, Operand, PreparedContraction};
use zerocopy::IntoBytes;

/// `rows` by `columns`, summed over `k`, whose elements are `row` and `step` apart on the row side.
fn product(rows: usize, columns: usize, k: usize, [row, step]: [usize; 2]) -> Contraction {
    Contraction {
        element: Element::F32,
        batch: vec![],
        m: vec![Dim::new(rows, row, 0, columns)],
        n: vec![Dim::new(columns, 0, 1, 1)],
        k: vec![Dim::new(k, step, columns, 0)],
    }
}

/// The offsets in the left and the right operand of each `k`.
fn steps(contraction: &Contraction) -> Vec<[usize; 2]> {
    contraction.k.iter().fold(vec![[0, 0]], |steps, dim| {
        let along = |[l, r]: [usize; 2]| {
            (0..dim.extent).map(move |step| [l + step * dim.left, r + step * dim.right])
        };
        steps.into_iter().flat_map(along).collect()
    })
}

/// The tile's name for packed columns, if the machine has the instructions, once the sums are what they must be.
fn rows_with(isa: Isa, contraction: &Contraction) -> Option<String> {
    let forms = [Form::Plain, Form::Packed];
    let kernel = PreparedContraction::with_forms(contraction, isa, forms).ok()?;
    let mut random = fastrand::Rng::with_seed(1);
    let [left, right, out] = kernel.elements();
    let mut numbers = |n: usize| (0..n).map(|_| random.f32() - 0.5).collect::<Vec<_>>();
    let (left, right) = (numbers(left), numbers(right));
    let packed = kernel.pack_right(right.as_bytes()).unwrap();
    let plan = kernel.plan(Form::Plain, Form::Packed, 1);
    let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
    let mut result = vec![f32::NAN; out];
    let operands = [Operand::Plain(left.as_bytes()), Operand::Packed(&packed)];
    let bytes = result.as_mut_bytes();
    kernel.run(&plan, operands[0], operands[1], bytes, &mut scratch);
    let [m, n] = [contraction.m[0], contraction.n[0]];
    let steps = steps(contraction);
    for row in 0..m.extent {
        for column in 0..n.extent {
            let term = |sum: f32, [l, r]: &[usize; 2]| {
                left[row * m.left + l].mul_add(right[column * n.right + r], sum)
            };
            let expected = steps.iter().fold(0.0, term);
            let found = result[row * m.out + column * n.out];
            assert_eq!(found.to_bits(), expected.to_bits(), "{}", plan.name());
        }
    }
    Some(plan.name().to_owned())
}

fn check(contraction: &Contraction, expected: &str) {
    check_with(Isa::Avx2, contraction, expected);
}

fn check_with(isa: Isa, contraction: &Contraction, expected: &str) {
    if let Some(name) = rows_with(isa, contraction) {
        assert!(name.contains(expected), "{name}: {contraction:?}");
    }
}

#[test]
fn rows_along_k_are_read_where_they_are() {
    // One block of rows, and several, whose last is a part of one.
    for (rows, k) in [(5, 3), (40, 24), (100, 700), (401, 700)] {
        for columns in [16, 24, 40, 300] {
            check(&product(rows, columns, k, [k, 1]), "left strided");
        }
    }
}

#[test]
fn tiles_of_one_vector_are_as_high_as_there_are_registers_for_addresses() {
    check(&product(6, 8, 40, [40, 1]), "6x8, left strided");
    check(&product(12, 8, 40, [40, 1]), "6x8, left strided");
    // Fewer `k` than a vector has lanes lie beside each other.
    check(&product(12, 8, 7, [7, 1]), "12x8, left packed in tasks");
    check_with(
        Isa::Avx512,
        &product(12, 16, 40, [40, 1]),
        "12x16, left strided",
    );
}

#[test]
fn rows_across_k_are_packed_for_many_columns() {
    // Rows that follow each other are read directly for few panels, whatever else.
    let apart = |columns| product(60, columns, 40, [1, 60]);
    check(&apart(4 * 16), "left direct");
    check(&apart(8 * 16), "left strided");
    check(&apart(9 * 16), "left packed in tasks");
    let crowded = |columns| product(256, columns, 40, [1, 256]);
    check(&crowded(2 * 16), "left direct");
    check(&crowded(4 * 16), "left packed in tasks");
}

#[test]
fn high_tiles_of_avx512_load_addresses_of_rows() {
    for k in [3, 40, 700] {
        let rows = product(28, 64, k, [k, 1]);
        for isa in [Isa::Avx512Halves, Isa::Avx512] {
            check_with(isa, &rows, "avx512 14x32, left strided");
        }
    }
}

#[test]
fn halves_are_of_256_bits_where_these_fill_more_lanes() {
    // So many fewer that it pays, and not quite.
    for (columns, tile) in [
        (8, "avx2"),
        (24, "avx2"),
        (72, "avx2"),
        (32, "avx512"),
        (88, "avx512"),
    ] {
        // Packed columns serve any number of rows, so that these do not matter.
        for rows in [1, 5, 100] {
            let of = product(rows, columns, 40, [40, 1]);
            check_with(Isa::Avx512Halves, &of, tile);
            check_with(Isa::Avx512, &of, "avx512");
        }
    }
}

#[test]
fn rows_that_crowd_the_first_cache_are_packed() {
    // Tiles of 14 rows: two sets have room for them, one has not.
    let of = |rows, k| product(rows, 64, k, [k, 1]);
    check_with(Isa::Avx512Halves, &of(28, 512), "14x32, left strided");
    check_with(
        Isa::Avx512Halves,
        &of(28, 1024),
        "14x32, left packed in tasks",
    );
    check_with(Isa::Avx512Halves, &of(7, 1024), "left strided");
    check(&of(28, 1024), "6x16, left strided");
}

#[test]
fn rows_that_crowd_the_second_cache_are_packed_for_several_panels() {
    let of = |rows, columns| product(rows, columns, 4096, [4096, 1]);
    check(&of(72, 48), "6x16, left strided");
    check(&of(78, 48), "6x16, left packed in tasks");
    check(&of(78, 16), "6x16, left strided");
}

/// Windows of `taps` over a line of 60 pixels, whose `channels` lie beside each other, with results in a line for each of `results`.
fn windows(results: usize, channels: usize, taps: usize) -> Contraction {
    let pixels = 60;
    Contraction {
        element: Element::F32,
        batch: vec![],
        m: vec![Dim::new(pixels, channels, 0, 1)],
        n: vec![Dim::new(results, 0, channels * taps, pixels)],
        k: vec![
            Dim::new(channels, 1, taps, 0),
            Dim::new(taps, channels, 1, 0),
        ],
    }
}

#[test]
fn pixels_whose_channels_lie_beside_each_other_are_rows() {
    check(&windows(9, 16, 3), "left strided, right packed, scattered");
    check(&windows(40, 16, 3), "left strided, right packed, scattered");
    check(&windows(2, 16, 3), "left strided, right packed, scattered");
    // Windows whose `k` lie apart, and points.
    check(&windows(9, 7, 3), "right packed, left direct");
    check(&windows(13, 8, 1), "right packed, left packed in tasks");
    check(&windows(40, 16, 1), "right packed, left packed in tasks");
    for (isa, lanes) in [(Isa::Avx512, 16), (Isa::Avx512Halves, 16)] {
        check_with(isa, &windows(lanes + 1, 16, 3), "scattered");
    }
}

/// As [`rows_with`], of rows of bytes with signs or without; the name is that for one task.
fn byte_rows_with(isa: Isa, contraction: &Contraction, element: Element) -> Option<String> {
    let contraction = &Contraction {
        element,
        ..contraction.clone()
    };
    let forms = [Form::Plain, Form::Packed];
    let kernel = PreparedContraction::with_forms(contraction, isa, forms).ok()?;
    let mut random = fastrand::Rng::with_seed(1);
    let [left, right, out] = kernel.elements();
    let mut bytes = |n: usize| (0..n).map(|_| random.u8(..)).collect::<Vec<_>>();
    let (left, right) = (bytes(left), bytes(right));
    let packed = kernel.pack_right(&right).unwrap();
    let steps = steps(contraction);
    let [m, n] = [contraction.m[0], contraction.n[0]];
    let signed = |byte: u8| i32::from(byte as i8);
    let number = |byte: u8, is_signed: bool| match is_signed {
        true => signed(byte),
        false => i32::from(byte),
    };
    let mut names = Vec::new();
    for tasks in [1, 2, 5] {
        let plan = kernel.plan(Form::Plain, Form::Packed, tasks);
        let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
        let mut result = vec![-1i32; out];
        let operands = [Operand::Plain(&left), Operand::Packed(&packed)];
        let bytes = result.as_mut_bytes();
        kernel.run(&plan, operands[0], operands[1], bytes, &mut scratch);
        for (row, column) in (0..m.extent).flat_map(|m| (0..n.extent).map(move |n| (m, n))) {
            let left_signed = element == Element::I8U8;
            let expected = steps.iter().map(|[l, r]| {
                let left = number(left[row * m.left + l], left_signed);
                left * number(right[column * n.right + r], !left_signed)
            });
            let found = result[row * m.out + column * n.out];
            assert_eq!(found, expected.sum::<i32>(), "{}", plan.name());
        }
        names.push(plan.name().to_owned());
    }
    names.into_iter().next()
}

/// Whether a kernel's steps take words of four bytes, by its name.
fn multiplies_four_bytes(name: &str) -> bool {
    ["amx", "avx512", "avx-vnni"]
        .iter()
        .any(|isa| name.starts_with(isa))
}

/// `in_place` is what machines with products of four bytes do, `widened` what others do.
fn check_bytes(contraction: &Contraction, in_place: &str, widened: &str) {
    check_each_isa(contraction, |name| match multiplies_four_bytes(name) {
        true => in_place,
        false => widened,
    });
}

/// Prepares a product of bytes for each instruction set, and checks that the kernel's name says what is expected of it.
fn check_each_isa<'a>(contraction: &Contraction, expected: impl Fn(&str) -> &'a str) {
    for element in [Element::U8I8, Element::I8U8] {
        for isa in Isa::ALL {
            let Some(name) = byte_rows_with(isa, contraction, element) else {
                continue;
            };
            let is_as_expected = name.contains(expected(&name));
            assert!(is_as_expected, "{isa:?} {name}: {contraction:?}");
        }
    }
}

#[test]
fn words_of_bytes_are_read_where_they_are_or_widened_once() {
    let (packed, widened) = ("left packed in tasks", "left widened in tasks");
    // One block of rows, and several.
    for (rows, k) in [(40, 24), (401, 700)] {
        check_bytes(&product(rows, 40, k, [k, 1]), "", widened);
    }
    // Words of two bytes, of four, and of neither: the last one overlaps. Rows may lie any number of bytes apart.
    let strided = "left strided";
    check_bytes(&product(60, 40, 46, [46, 1]), strided, widened);
    check_bytes(&product(60, 40, 45, [45, 1]), strided, widened);
    check_bytes(&product(60, 40, 46, [92, 2]), packed, packed);
    // As many bytes between the first and the last as would be packed, and more.
    check_bytes(&product(60, 40, 46, [46, 1]), strided, widened);
    check_bytes(&product(60, 40, 46, [47, 1]), strided, packed);
    // The second cache keeps all `k` of the rows of a tile, which has six rows with AVX2, or does not.
    for (k, expected) in [(21_844, widened), (21_848, packed)] {
        let name = byte_rows_with(Isa::Avx2, &product(6, 16, k, [k, 1]), Element::U8I8);
        assert!(name.is_none_or(|name| name.contains(expected)), "{k}");
    }
    let words = product(60, 40, 48, [52, 1]);
    check_bytes(&words, "left strided", packed);
}

/// Windows of `taps` by three pixels of three channels, two pixels apart, in a picture whose rows have 133 pixels.
fn pixels_of_three(columns: usize, taps: usize) -> Contraction {
    let run = 3 * taps;
    Contraction {
        m: vec![Dim::new(60, 6, 0, columns)],
        k: vec![
            Dim::new(3, 399, run * columns, 0),
            Dim::new(run, 1, columns, 0),
        ],
        ..product(60, columns, run, [6, 1])
    }
}

/// Runs of bytes that are not of whole words have the last word overlap, unless that has too much be multiplied again.
#[test]
fn the_last_word_of_a_run_of_bytes_overlaps() {
    let (packed, widened) = ("left packed in tasks", "left widened in tasks");
    for taps in [3, 5, 7] {
        check_bytes(&pixels_of_three(24, taps), "left strided", widened);
    }
    check_bytes(&pixels_of_three(192, 3), "left strided", widened);
    check_bytes(&pixels_of_three(193, 3), packed, widened);
    // Less than a word of four bytes, which is a word of two and one more.
    check_bytes(&pixels_of_three(24, 1), packed, packed);
}

#[test]
fn pixels_are_rows_of_bytes_where_packing_them_as_columns_costs_more() {
    let (columns, rows) = (
        "right packed, left packed in tasks",
        "right packed, scattered",
    );
    // Eight channels fill half a vector of AVX-512.
    let of_eight = |name: &str| match name.starts_with("avx512") {
        true => columns,
        false => rows,
    };
    check_each_isa(&windows(8, 16, 3), of_eight);
    // Nine fill half of two vectors, but words of four bytes take longer to pack.
    check_each_isa(&windows(9, 16, 3), |name| {
        match name.starts_with("avx-vnni") {
            true => rows,
            false => columns,
        }
    });
    check_each_isa(&windows(16, 16, 3), |_| rows);
    check_each_isa(&windows(17, 16, 3), |_| columns);
}
