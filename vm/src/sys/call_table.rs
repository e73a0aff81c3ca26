//! The table of the functions of an operating-system layer that may fail. This package has one and `weir_wasi` has one.

/// Defines `Call`, an enum with a variant for each function; its method `enter`; and with the feature `fault-injection` of the package
/// that uses the macro, `functions`. The first argument is the name of the package, others are `Variant = "module::function"`.
#[doc(hidden)]
#[macro_export]
macro_rules! __call_table {
    ($package:literal, $($name:ident = $text:literal,)*) => {
        /// A function of this layer that may fail.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Call {
            $($name,)*
        }

        /// One for each [`Call`], in its order.
        #[cfg(feature = "fault-injection")]
        static FUNCTIONS: [$crate::fault_injection::Function; [$($text),*].len()] =
            [$($crate::fault_injection::Function::new(concat!($package, "::", $text)),)*];

        impl Call {
            /// To be called first by the function. Does nothing, unless a test makes this call fail.
            ///
            /// # Errors
            /// The one that the test chose.
            #[inline(always)]
            pub fn enter(self) -> ::std::io::Result<()> {
                #[cfg(feature = "fault-injection")]
                FUNCTIONS[self as usize].enter()?;
                Ok(())
            }
        }

        /// The functions of this package's operating-system layer that may fail. The table of `weir_wasi` is separate from that of
        /// `weir`.
        #[cfg(feature = "fault-injection")]
        #[must_use]
        pub fn functions() -> &'static [$crate::fault_injection::Function] {
            &FUNCTIONS
        }
    };
}
