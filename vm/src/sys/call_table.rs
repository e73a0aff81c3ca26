//! The table of those functions of an operating-system layer that can be made to fail. This package and `weir_wasi`
//! each have one.

/// Defines `Call`, an enum with a variant for each function, and its method `enter`; with the feature `fault-injection`
/// of the package that uses the macro also `functions`. The first argument is the name of the package, the others are
/// `Variant = "module::function"`.
#[doc(hidden)]
#[macro_export]
macro_rules! __call_table {
    ($package:literal, $($name:ident = $text:literal,)*) => {
        /// A function of this layer that may fail.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Call {
            $($name,)*
        }

        /// One for each [`Call`], in the same order.
        #[cfg(feature = "fault-injection")]
        static FUNCTIONS: [$crate::fault_injection::Function; [$($text),*].len()] =
            [$($crate::fault_injection::Function::new(concat!($package, "::", $text)),)*];

        impl Call {
            /// The function calls this first. Does nothing, unless a test makes this call fail.
            ///
            /// # Errors
            /// The error that the test chose.
            #[inline(always)]
            pub fn enter(self) -> ::std::io::Result<()> {
                #[cfg(feature = "fault-injection")]
                FUNCTIONS[self as usize].enter()?;
                Ok(())
            }
        }

        /// Returns the functions of this package's operating-system layer that may fail. The table of `weir_wasi` is
        /// separate from that of `weir`.
        #[cfg(feature = "fault-injection")]
        #[must_use]
        pub fn functions() -> &'static [$crate::fault_injection::Function] {
            &FUNCTIONS
        }
    };
}
