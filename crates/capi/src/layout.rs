//! `ov_layout.h`: what the dimensions of a tensor mean.

use crate::ffi::{In, Out, Required, Text, free, handle};
use crate::memory;
use crate::status::{Failure, Status, guard, guard_or};
use libc::c_char;
use vinelift::Layout;

/// Makes a layout from its text.
#[unsafe(no_mangle)]
extern "C" fn ov_layout_create(layout_desc: Text<'_>, layout: Out<'_, *mut Layout>) -> Status {
    guard(|| {
        let layout = layout.required("layout")?;
        let parsed = layout_desc.required("layout_desc")?;
        let parsed: Layout = parsed.parse().map_err(Failure::argument)?;
        layout.write(handle(parsed));
        Ok(())
    })
}

/// Frees a layout.
#[unsafe(no_mangle)]
extern "C" fn ov_layout_free(layout: Option<Box<Layout>>) {
    free(layout);
}

/// The text of a layout, to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn ov_layout_to_string(layout: In<'_, Layout>) -> *const c_char {
    guard_or(std::ptr::null(), || {
        let text = layout.required("layout")?.to_string();
        Ok(memory::copy_text(&text)?.cast_const())
    })
}
