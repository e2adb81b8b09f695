//! Instructions as a disassembler reads them.

use super::super::Target;
use super::assemble::assemble;
use super::encode::*;
use super::machine::*;
use super::opcode::{Opcode, opcode};
use super::opcodes;
use crate::vector_ir::ops::{Access, Gather};
use crate::vector_ir::program::{Stride, TripCount};
use iced_x86::{Decoder, DecoderOptions, Formatter, NasmFormatter};

fn text(emit: impl FnOnce(&mut Assembler)) -> Vec<String> {
    let mut code = Assembler::default();
    emit(&mut code);
    let bytes = code.finish(&[]).unwrap();
    let mut formatter = NasmFormatter::new();
    let decoder = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE);
    let line = |instruction: iced_x86::Instruction| {
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        line
    };
    decoder.into_iter().map(line).collect()
}

const ADD: Opcode = opcode(0, 1, false, 0x58);
const BROADCAST: Opcode = opcode(1, 2, false, 0x58);

fn at(base: u8, scale: u8, offset: i32) -> Memory {
    Memory::At {
        base: Gpr(base),
        scale,
        offset,
    }
}

#[test]
fn registers_of_every_number() {
    let found = text(|code| {
        for (a, b, c) in [(0, 1, 2), (15, 8, 7), (31, 16, 9), (9, 24, 31)] {
            code.evex(ADD, 64, a, b, RmOperand::Register(c), Modifiers::default());
        }
        code.evex(ADD, 16, 1, 2, RmOperand::Register(3), Modifiers::default());
        for (a, b, c) in [(0, 1, 2), (15, 8, 7), (7, 15, 9)] {
            code.vex(ADD, 32, a, b, RmOperand::Register(c), None);
        }
        code.vex(ADD, 16, 1, 2, RmOperand::Register(3), None);
    });
    let expected = [
        "vaddps zmm0,zmm1,zmm2",
        "vaddps zmm15,zmm8,zmm7",
        "vaddps zmm31,zmm16,zmm9",
        "vaddps zmm9,zmm24,zmm31",
        "vaddps xmm1,xmm2,xmm3",
        "vaddps ymm0,ymm1,ymm2",
        "vaddps ymm15,ymm8,ymm7",
        "vaddps ymm7,ymm15,ymm9",
        "vaddps xmm1,xmm2,xmm3",
    ];
    assert_eq!(found, expected);
}

#[test]
fn operands_in_memory() {
    let masked = Modifiers {
        mask: 3,
        zeroing: true,
        immediate: None,
    };
    let found = text(|code| {
        code.evex(
            ADD,
            64,
            1,
            2,
            RmOperand::Memory(at(3, 4, 0)),
            Modifiers::default(),
        );
        code.evex(ADD, 64, 1, 2, RmOperand::Memory(at(13, 8, 64)), masked);
        code.evex(
            ADD,
            64,
            1,
            2,
            RmOperand::Broadcast(at(12, 0, 4)),
            Modifiers::default(),
        );
        code.evex(
            ADD,
            32,
            1,
            2,
            RmOperand::Broadcast(at(7, 0, 0)),
            Modifiers::default(),
        );
        code.evex(
            BROADCAST,
            64,
            30,
            0,
            RmOperand::Memory(at(5, 0, 0)),
            Modifiers::default(),
        );
        code.vex(ADD, 32, 1, 2, RmOperand::Memory(at(12, 1, -8)), None);
        code.vex(ADD, 32, 1, 2, RmOperand::Memory(at(4, 0, 8)), None);
    });
    let expected = [
        "vaddps zmm1,zmm2,[rbx+rax*4]",
        "vaddps zmm1{k3}{z},zmm2,[r13+rax*8+40h]",
        "vaddps zmm1,zmm2,[r12+4]{1to16}",
        "vaddps ymm1,ymm2,[rdi]{1to8}",
        "vpbroadcastd zmm30,[rbp]",
        "vaddps ymm1,ymm2,[r12+rax-8]",
        "vaddps ymm1,ymm2,[rsp+8]",
    ];
    assert_eq!(found, expected);
}

#[test]
fn indices_and_what_lies_where_they_say() {
    let indexed = |base, scale, offset| Memory::Indexed {
        base: Gpr(base),
        index: Gpr(1),
        scale,
        offset,
    };
    let found = text(|code| {
        code.load(Gpr(6), Gpr(2), 60);
        code.copy_lower_half(Gpr(1), Gpr(6));
        code.copy_lower_half(Gpr(9), Gpr(12));
        code.take_upper_half(Gpr(6));
        code.load(Gpr(1), Gpr(13), 8);
        code.address(Gpr(2), at(9, 8, 64));
        code.address(Gpr(6), indexed(15, 1, 0));
        code.prefetch(at(9, 0, 4096));
        code.multiply(Gpr(1), 64);
        code.multiply(Gpr(1), 3980);
        code.multiply(Gpr(10), -3);
        code.evex(
            ADD,
            16,
            17,
            2,
            RmOperand::Memory(indexed(6, 4, 12)),
            Modifiers::default(),
        );
        code.vex(ADD, 16, 1, 2, RmOperand::Memory(indexed(13, 8, 0)), None);
        code.add(RSP, -128);
    });
    let expected = [
        "mov rsi,[rdx+3Ch]",
        "mov ecx,esi",
        "mov r9d,r12d",
        "shr rsi,20h",
        "mov rcx,[r13+8]",
        "lea rdx,[r9+rax*8+40h]",
        "lea rsi,[r15+rcx]",
        "prefetcht0 [r9+1000h]",
        "shl rcx,6",
        "imul rcx,0F8Ch",
        "imul r10,0FFFFFFFFFFFFFFFDh",
        "vaddps xmm17,xmm2,[rsi+rcx*4+0Ch]",
        "vaddps xmm1,xmm2,[r13+rcx*8]",
        "add rsp,0FFFFFFFFFFFFFF80h",
    ];
    assert_eq!(found, expected);
}

#[test]
fn loops_and_what_they_count() {
    let found = text(|code| {
        code.push(Gpr(12));
        code.load(Gpr(9), RDI, 16);
        code.store(Gpr(9), RSP, 64);
        code.store(RAX, Gpr(12), 0);
        code.set(RAX, 0);
        let top = code.here();
        code.add(Gpr(9), 1000);
        code.add(RAX, -1);
        code.compare(RAX, 7);
        code.compare_with(RAX, Gpr(9));
        code.copy(Gpr(10), RAX);
        code.jump_if(Condition::LessOrEqual, top);
        code.jump(top);
        code.pop(Gpr(12));
        code.clear_upper();
        code.ret();
    });
    let expected = [
        "push r12",
        "mov r9,[rdi+10h]",
        "mov [rsp+40h],r9",
        "mov [r12],rax",
        "mov rax,0",
        "add r9,3E8h",
        "add rax,0FFFFFFFFFFFFFFFFh",
        "cmp rax,7",
        "cmp rax,r9",
        "mov r10,rax",
        "jle near 000000000000001Ch",
        "jmp 000000000000001Ch",
        "pop r12",
        "vzeroupper",
        "ret",
    ];
    assert_eq!(found, expected);
}

#[test]
fn whether_a_mask_has_lanes() {
    let found = text(|code| {
        let last = RmOperand::Register(5);
        code.vex(opcodes::has_lanes(Target::Avx2, 8), 32, 5, 0, last, None);
        for lanes in [2, 8, 16, 32, 64] {
            code.vex(
                opcodes::has_lanes(Target::Avx512, lanes),
                16,
                5,
                0,
                last,
                None,
            );
        }
        let done = code.label();
        code.jump_if(Condition::Zero, done);
        code.put(done);
    });
    let expected = [
        "vptest ymm5,ymm5",
        "kortestb k5,k5",
        "kortestb k5,k5",
        "kortestw k5,k5",
        "kortestd k5,k5",
        "kortestq k5,k5",
        "je near 0000000000000024h",
    ];
    assert_eq!(found, expected);
}

#[test]
fn constants_lie_behind_the_code() {
    let mut code = Assembler::default();
    code.vex(ADD, 32, 1, 2, RmOperand::Memory(Memory::Pool(32)), None);
    code.ret();
    let bytes = code.finish(&[7; 64]).unwrap();
    assert_eq!(bytes.len(), 128);
    let mut decoder = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE);
    assert_eq!(decoder.decode().ip_rel_memory_address(), 64 + 32);
}

#[test]
fn divisions_that_leave_nothing() {
    for by in [1u32, 2, 3, 6, 7, 12, 31, 100, 255] {
        let found = text(|code| code.divide_exactly(Gpr(9), by, 1 << 30));
        let operand = |text: &str| text.rsplit_once(',').unwrap().1.to_owned();
        assert!(found[0].starts_with("imul r9d,"), "{found:?}");
        let times = operand(&found[0]);
        let times = match times.strip_suffix('h') {
            Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
            None => times.parse::<i64>().unwrap() as u32,
        };
        let power: u32 = found.get(1).map_or(0, |shift| {
            assert!(shift.starts_with("shr r9d,"), "{found:?}");
            operand(shift).parse().unwrap()
        });
        for x in [0, 1, 5, 1000, i32::MAX as u32 / by] {
            assert_eq!((x * by).wrapping_mul(times) >> power, x, "{found:?}");
        }
    }
}

/// `out[l] = left[l] + right[l]` for eight elements, as a program that a test may spoil.
fn sum() -> MachineProgram {
    let mut program = MachineProgram {
        pointers: vec![0, 1, 2],
        ..MachineProgram::default()
    };
    let [a, b] = [0, 1].map(|pointer| {
        let to = program.value(Class::Vector);
        let mut load = whole(Form::Load, LOAD);
        load.to = Some(to);
        load.access = Some(Access {
            pointer,
            step: 4,
            offset: 0,
        });
        program.steps.push(MachineStep::Do(load));
        Some(Operand::Value(to))
    });
    let mut add = whole(Form::Rvm, ADD);
    add.from = [a, b, None];
    add.to = Some(program.value(Class::Vector));
    program.steps.push(MachineStep::Do(add));
    let mut store = whole(Form::Store, STORE);
    store.from[0] = add.to.map(Operand::Value);
    store.access = Some(Access {
        pointer: 2,
        step: 4,
        offset: 0,
    });
    program.steps.push(MachineStep::Do(store));
    program
}

const LOAD: Opcode = opcode(0, 1, false, 0x10);
const STORE: Opcode = opcode(0, 1, false, 0x11);

fn whole(form: Form, op: Opcode) -> MachineInstruction {
    instruction(form, op, 32)
}

/// The instruction of that number in a program without loops.
fn at_step(program: &mut MachineProgram, number: usize) -> &mut MachineInstruction {
    match &mut program.steps[number] {
        MachineStep::Do(instruction) => instruction,
        MachineStep::Loop { .. } | MachineStep::IfLanes(_) => {
            panic!("step {number} is no instruction")
        }
    }
}

fn in_loop(
    mut program: MachineProgram,
    trips: TripCount,
    moves: Vec<(u32, Stride)>,
) -> MachineProgram {
    let body = std::mem::take(&mut program.steps);
    program.steps = vec![MachineStep::Loop { trips, moves, body }];
    program
}

#[test]
fn what_has_no_encoding_is_refused() {
    let targets = [Target::Avx2, Target::Avx512];
    let assembles = |program: &MachineProgram| {
        targets.map(|target| assemble(program.clone(), target, true).is_some())
    };
    assert_eq!(assembles(&sum()), [true, true]);
    type Spoil = fn(&mut MachineProgram);
    let spoiled: [(&str, Spoil); 10] = [
        ("an unknown pointer", |p| {
            at_step(p, 0).access.as_mut().unwrap().pointer = 7;
        }),
        ("no memory", |p| at_step(p, 1).access = None),
        ("indices that nobody has checked", |p| {
            at_step(p, 0).access.as_mut().unwrap().pointer = INDICES;
        }),
        ("a step of three bytes", |p| {
            at_step(p, 0).access.as_mut().unwrap().step = 3;
        }),
        ("no second operand", |p| at_step(p, 2).from[1] = None),
        ("nothing to store", |p| at_step(p, 3).from[0] = None),
        ("no place for the result", |p| at_step(p, 2).to = None),
        ("a value that there is not", |p| {
            at_step(p, 3).from[0] = Some(Operand::Broadcast(0));
            p.broadcasts.push(Broadcast {
                source: BroadcastSource::Argument(u32::MAX),
                width: 4,
            });
        }),
        ("registers of 24 bytes", |p| at_step(p, 2).bytes = 24),
        ("elements that no index was checked for", |p| {
            let load = at_step(p, 0);
            let gather = Gather {
                access: load.access.unwrap(),
                index_bytes: 4,
                index_step: 4,
                column_bytes: 0,
                row_bytes: 0,
                columns: 0,
            };
            load.form = Form::Gather(GatherPart {
                first: 0,
                lanes: 8,
                width: 4,
                gather,
            });
            p.has_indices = true;
        }),
    ];
    for (what, spoil) in spoiled {
        let mut program = sum();
        spoil(&mut program);
        assert_eq!(assembles(&program), [false, false], "{what}");
    }
}

#[test]
fn loops_beyond_32_bits_are_refused() {
    let assembles = |trips, moves| {
        let program = in_loop(sum(), trips, moves);
        assemble(program, Target::Avx2, true).is_some()
    };
    let bytes = |bytes| vec![(0, Stride::Bytes(bytes))];
    assert!(assembles(TripCount::Fixed(1 << 20), bytes(1 << 10)));
    assert!(!assembles(TripCount::Fixed(1 << 21), bytes(1 << 10)));
    assert!(!assembles(TripCount::Fixed(0), vec![]));
    assert!(!assembles(TripCount::Fixed(2), vec![(9, Stride::Bytes(8))]));
    // A stride that the caller gives may be any.
    let given = vec![(0, Stride::Argument(1))];
    assert!(assembles(TripCount::Fixed(1 << 21), given.clone()));
    assert!(assembles(TripCount::Times(2), given));
    let lanes = |extent, step| TripCount::Lanes { extent, step };
    assert!(assembles(lanes(100, 8), vec![]));
    assert!(!assembles(lanes(i32::MAX, 8), vec![]));
    assert!(assembles(lanes(7, 8), vec![]));
    assert!(!assembles(lanes(0, 8), vec![]));
    assert!(!assembles(lanes(8, 0), vec![]));
}

/// Loads `count` values through as many pointers, or through one, and stores them once all are there.
fn copies(count: usize, has_pointers: bool) -> MachineProgram {
    let mut program = MachineProgram::default();
    let pointers = if has_pointers { count as u32 } else { 1 };
    program.pointers.extend(0..pointers);
    let values: Vec<_> = (0..count).map(|_| program.value(Class::Vector)).collect();
    for (form, op) in [(Form::Load, LOAD), (Form::Store, STORE)] {
        for (k, value) in values.iter().enumerate() {
            let mut i = whole(form, op);
            i.access = Some(Access {
                pointer: k as u32 % pointers,
                step: 4,
                offset: 0,
            });
            match form {
                Form::Load => i.to = Some(*value),
                _ => i.from[0] = Some(Operand::Value(*value)),
            }
            program.steps.push(MachineStep::Do(i));
        }
    }
    program
}

#[test]
fn more_than_the_registers_hold_is_spilled_as_far_as_the_stack_reaches() {
    for target in [Target::Avx2, Target::Avx512] {
        let how = |count, has_pointers| {
            [false, true]
                .map(|may_spill| assemble(copies(count, has_pointers), target, may_spill).is_some())
        };
        let registers = target.registers();
        assert_eq!(how(registers, false), [true, true]);
        assert_eq!(how(registers + 1, false), [false, true]);
        assert_eq!(how(registers + 40, false), [false, true]);
        assert_eq!(how(registers + 250, false), [false, false]);
        // Pointers lie there in any case.
        assert_eq!(how(12, true), [true, true]);
        assert_eq!(how(13, true), [true, true]);
    }
}

#[test]
fn a_division_of_large_numbers_is_refused() {
    for (most, fits) in [(i64::from(i32::MAX), true), (1 << 31, false)] {
        let mut code = Assembler::default();
        code.divide_exactly(Gpr(1), 3, most);
        assert_eq!(code.finish(&[]).is_some(), fits);
    }
}

#[test]
fn registers_and_scales_that_there_are_not_are_refused() {
    let refused = |emit: &dyn Fn(&mut Assembler)| {
        let mut code = Assembler::default();
        emit(&mut code);
        code.finish(&[]).is_none()
    };
    let plain = Modifiers::default();
    assert!(refused(&|c| c.vex(
        ADD,
        32,
        16,
        0,
        RmOperand::Register(1),
        None
    )));
    assert!(refused(&|c| c.vex(
        ADD,
        64,
        1,
        0,
        RmOperand::Register(1),
        None
    )));
    assert!(refused(&|c| c.evex(
        ADD,
        64,
        1,
        32,
        RmOperand::Register(1),
        plain
    )));
    assert!(refused(&|c| c.vex(
        ADD,
        32,
        1,
        0,
        RmOperand::Memory(at(1, 3, 0)),
        None
    )));
    let by_stack = Memory::Indexed {
        base: Gpr(1),
        index: RSP,
        scale: 1,
        offset: 0,
    };
    assert!(refused(&|c| c.address(Gpr(1), by_stack)));
    assert!(refused(&|c| c.vex(
        ADD,
        32,
        1,
        0,
        RmOperand::Memory(Memory::Pool(0)),
        None
    )));
    assert!(refused(&|c| {
        let nowhere = c.label();
        c.jump(nowhere);
    }));
}
