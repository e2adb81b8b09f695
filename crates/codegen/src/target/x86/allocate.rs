//! Registers for the values of a program, by a linear scan.

use super::machine::{Class, Id, MachineInstruction, MachineProgram, MachineStep};

/// The register of each value.
pub(super) struct Registers {
    pub(super) of: Vec<u8>,
    /// Vector registers from here on are free throughout.
    pub(super) first_free: u8,
}

#[derive(Clone, Copy, Default)]
struct Live {
    start: usize,
    end: usize,
    /// How many loops are open around its first instruction.
    depth: usize,
    used: bool,
}

struct Scan {
    live: Vec<Live>,
    position: usize,
    /// For each loop that is open, the values from outside that it touches.
    open: Vec<Vec<Id>>,
}

/// `None` if `vectors` or `masks` registers are too few; mask registers are numbered from 1.
pub(super) fn allocate(program: &MachineProgram, vectors: u8, masks: u8) -> Option<Registers> {
    let mut scan = Scan {
        live: vec![Live::default(); program.values.len()],
        position: 0,
        open: Vec::new(),
    };
    for mask in &program.masks {
        scan.position += 1;
        scan.instruction(mask);
    }
    scan.steps(&program.steps);
    let mut order: Vec<Id> = (0..program.values.len() as Id)
        .filter(|id| scan.live[*id as usize].used)
        .collect();
    order.sort_by_key(|id| scan.live[*id as usize].start);
    let mut of = vec![0; program.values.len()];
    let mut first_free = 0;
    // For each register, the last position at which it is needed.
    let mut vector_busy = vec![None; vectors.into()];
    let mut mask_busy = vec![None; masks.into()];
    for id in order {
        let Live { start, end, .. } = scan.live[id as usize];
        let class = program.values[id as usize];
        let busy = match class {
            Class::Vector => &mut vector_busy,
            Class::Mask => &mut mask_busy,
        };
        // An instruction may write where it reads for the last time.
        let free = busy
            .iter()
            .position(|until| until.is_none_or(|u| u <= start))?;
        busy[free] = Some(end);
        of[id as usize] = free as u8;
        match class {
            Class::Vector => first_free = first_free.max(free as u8 + 1),
            Class::Mask => of[id as usize] += 1,
        }
    }
    Some(Registers { of, first_free })
}

impl Scan {
    fn steps(&mut self, steps: &[MachineStep]) {
        for step in steps {
            self.position += 1;
            match step {
                MachineStep::Do(instruction) => self.instruction(instruction),
                MachineStep::Loop { body, .. } => {
                    self.open.push(Vec::new());
                    self.steps(body);
                    self.position += 1;
                    // Values from outside must survive until the last turn.
                    for id in self.open.pop().unwrap_or_default() {
                        self.touch(id);
                    }
                }
            }
        }
    }

    fn instruction(&mut self, instruction: &MachineInstruction) {
        for id in instruction.reads().chain(instruction.to) {
            self.touch(id);
        }
    }

    fn touch(&mut self, id: Id) {
        let live = &mut self.live[id as usize];
        if !live.used {
            *live = Live {
                start: self.position,
                end: self.position,
                depth: self.open.len(),
                used: true,
            };
        }
        live.end = self.position;
        if live.depth < self.open.len()
            && let Some(innermost) = self.open.last_mut()
        {
            innermost.push(id);
        }
    }
}
