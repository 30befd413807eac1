//! Tables of other libraries, and tables for them, through Arrow's C interface.
//!
//! Its three structs are a stable ABI that polars, pyarrow, DuckDB, pandas and others exchange as
//! capsules (`__arrow_c_stream__`, `__arrow_c_array__`). A few hundred lines read the types that
//! ids, times and features have; Arrow's own crates would be as much to compile as all the rest.

mod give;
mod take;

pub use give::arrow_stream;
pub use take::ArrowTable;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A type, with those of its children.
#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// Values of a type.
#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// Arrays of one type, one after the other.
#[repr(C)]
struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// A struct of the interface: whoever holds it releases it once.
trait Released: Sized {
    /// One that holds nothing.
    const NOTHING: Self;

    /// Takes the content out of a struct and leaves nothing in it, as the interface moves structs.
    ///
    /// # Safety
    /// The pointer is to a struct of this type that was filled or released.
    unsafe fn moved(from: *mut Self) -> Self {
        // SAFETY: the caller vouches for the pointer.
        unsafe { std::ptr::replace(from, Self::NOTHING) }
    }
}

impl Released for ArrowSchema {
    const NOTHING: ArrowSchema = ArrowSchema {
        format: null_mut(),
        name: null_mut(),
        metadata: null_mut(),
        flags: 0,
        n_children: 0,
        children: null_mut(),
        dictionary: null_mut(),
        release: None,
        private_data: null_mut(),
    };
}

impl Released for ArrowArray {
    const NOTHING: ArrowArray = ArrowArray {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: null_mut(),
        children: null_mut(),
        dictionary: null_mut(),
        release: None,
        private_data: null_mut(),
    };
}

impl Released for ArrowArrayStream {
    const NOTHING: ArrowArrayStream = ArrowArrayStream {
        get_schema: None,
        get_next: None,
        get_last_error: None,
        release: None,
        private_data: null_mut(),
    };
}

macro_rules! released_when_dropped {
    ($($kind:ty),*) => {$(
        impl Drop for $kind {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it was filled by its producer and is released here alone.
                    unsafe { release(self) }
                }
            }
        }

        // SAFETY: the interface lets a struct be read and released by any thread; nothing here
        // changes one that is shared.
        unsafe impl Send for $kind {}
        unsafe impl Sync for $kind {}
    )*};
}

released_when_dropped!(ArrowSchema, ArrowArray, ArrowArrayStream);
