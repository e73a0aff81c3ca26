//! Limits on the shape of a module: the numbers of its items, as its sections declare them.
//!
//! They are checked before anything is validated, by reading the headers of sections and the section of types. So refusing a module
//! costs little, whatever its bodies are. What is malformed is left to validation.

use wasmparser::{CompositeInnerType, Parser, Payload};

/// Limits on the shape of a module, which is refused if it exceeds one. `None` is no limit. Imported items are not counted.
///
/// The limits, and the values of [`EnforcedLimits::strict`], are those of wasmi.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EnforcedLimits {
    /// Number of globals.
    pub max_globals: Option<u32>,
    /// Number of functions.
    pub max_functions: Option<u32>,
    /// Number of tables.
    pub max_tables: Option<u32>,
    /// Number of element segments.
    pub max_element_segments: Option<u32>,
    /// Number of memories.
    pub max_memories: Option<u32>,
    /// Number of data segments.
    pub max_data_segments: Option<u32>,
    /// Number of parameters of each function type, and so of each function and block.
    pub max_params: Option<usize>,
    /// Number of results of each function type.
    pub max_results: Option<usize>,
    /// Least average length of functions' bodies.
    pub min_avg_bytes_per_function: Option<AvgBytesPerFunctionLimit>,
}

/// A limit on the average length of functions' bodies. Very many very short functions cost more than their bytes say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AvgBytesPerFunctionLimit {
    /// The limit holds for modules whose bodies have this many bytes together, or more.
    pub req_funcs_bytes: u32,
    /// The least average, in bytes.
    pub min_avg_bytes_per_function: u32,
}

impl EnforcedLimits {
    /// Returns limits for modules of unknown origin. Programs that compilers produce seldom exceed them, except for the number of
    /// functions, which large ones do.
    pub fn strict() -> EnforcedLimits {
        EnforcedLimits {
            max_globals: Some(1000),
            max_functions: Some(10_000),
            max_tables: Some(100),
            max_element_segments: Some(1000),
            max_memories: Some(1),
            max_data_segments: Some(1000),
            max_params: Some(32),
            max_results: Some(32),
            min_avg_bytes_per_function: Some(AvgBytesPerFunctionLimit { req_funcs_bytes: 1000, min_avg_bytes_per_function: 40 }),
        }
    }

    /// Checks a module.
    ///
    /// # Errors
    /// It exceeds a limit.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other sections have no limit, and the parser may learn of more")]
    pub fn check(&self, bytes: &[u8]) -> Result<(), EnforcedLimitsError> {
        let mut parser = Parser::new(0);
        let mut at = 0;
        while let Ok(wasmparser::Chunk::Parsed { consumed, payload }) = parser.parse(&bytes[at..], true) {
            at += consumed;
            match payload {
                Payload::TypeSection(types) => {
                    let functions = types.into_iter().map_while(Result::ok).flat_map(|group| group.into_types());
                    for ty in functions {
                        if let CompositeInnerType::Func(ty) = &ty.composite_type.inner {
                            self.check_type(ty.params().len(), ty.results().len())?;
                        }
                    }
                }
                Payload::FunctionSection(section) => {
                    at_most(section.count(), self.max_functions, |limit| EnforcedLimitsError::TooManyFunctions { limit })?;
                }
                Payload::TableSection(section) => {
                    at_most(section.count(), self.max_tables, |limit| EnforcedLimitsError::TooManyTables { limit })?;
                }
                Payload::MemorySection(section) => {
                    at_most(section.count(), self.max_memories, |limit| EnforcedLimitsError::TooManyMemories { limit })?;
                }
                Payload::GlobalSection(section) => {
                    at_most(section.count(), self.max_globals, |limit| EnforcedLimitsError::TooManyGlobals { limit })?;
                }
                Payload::ElementSection(section) => {
                    let error = |limit| EnforcedLimitsError::TooManyElementSegments { limit };
                    at_most(section.count(), self.max_element_segments, error)?;
                }
                Payload::DataSection(section) => {
                    at_most(section.count(), self.max_data_segments, |limit| EnforcedLimitsError::TooManyDataSegments { limit })?;
                }
                Payload::CodeSectionStart { count, size, .. } => {
                    self.check_average(count, size)?;
                    // Sections follow whose numbers are checked, too.
                    parser.skip_section();
                    at = at.saturating_add(size as usize);
                    if at > bytes.len() {
                        return Ok(());
                    }
                }
                Payload::End(_) => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn check_type(&self, params: usize, results: usize) -> Result<(), EnforcedLimitsError> {
        at_most(params, self.max_params, |limit| EnforcedLimitsError::TooManyParameters { limit })?;
        at_most(results, self.max_results, |limit| EnforcedLimitsError::TooManyResults { limit })
    }

    fn check_average(&self, functions: u32, bytes: u32) -> Result<(), EnforcedLimitsError> {
        let Some(AvgBytesPerFunctionLimit { req_funcs_bytes, min_avg_bytes_per_function: limit }) =
            self.min_avg_bytes_per_function
        else {
            return Ok(());
        };
        match bytes.checked_div(functions) {
            Some(avg) if bytes >= req_funcs_bytes && avg < limit => {
                Err(EnforcedLimitsError::MinAvgBytesPerFunction { limit, avg })
            }
            _ => Ok(()),
        }
    }
}

fn at_most<N: PartialOrd + Copy>(
    number: N,
    limit: Option<N>,
    error: impl FnOnce(N) -> EnforcedLimitsError,
) -> Result<(), EnforcedLimitsError> {
    match limit {
        Some(limit) if number > limit => Err(error(limit)),
        _ => Ok(()),
    }
}

/// The limit of a module's shape that a module exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnforcedLimitsError {
    /// [`EnforcedLimits::max_globals`]
    #[error("the module has more than {limit} globals")]
    TooManyGlobals {
        /// The limit.
        limit: u32,
    },
    /// [`EnforcedLimits::max_tables`]
    #[error("the module has more than {limit} tables")]
    TooManyTables {
        /// The limit.
        limit: u32,
    },
    /// [`EnforcedLimits::max_functions`]
    #[error("the module has more than {limit} functions")]
    TooManyFunctions {
        /// The limit.
        limit: u32,
    },
    /// [`EnforcedLimits::max_memories`]
    #[error("the module has more than {limit} memories")]
    TooManyMemories {
        /// The limit.
        limit: u32,
    },
    /// [`EnforcedLimits::max_element_segments`]
    #[error("the module has more than {limit} element segments")]
    TooManyElementSegments {
        /// The limit.
        limit: u32,
    },
    /// [`EnforcedLimits::max_data_segments`]
    #[error("the module has more than {limit} data segments")]
    TooManyDataSegments {
        /// The limit.
        limit: u32,
    },
    /// [`EnforcedLimits::max_params`]
    #[error("a function type has more than {limit} parameters")]
    TooManyParameters {
        /// The limit.
        limit: usize,
    },
    /// [`EnforcedLimits::max_results`]
    #[error("a function type has more than {limit} results")]
    TooManyResults {
        /// The limit.
        limit: usize,
    },
    /// [`EnforcedLimits::min_avg_bytes_per_function`]
    #[error("the functions have {avg} bytes on average, and should have {limit}")]
    MinAvgBytesPerFunction {
        /// The limit, in bytes.
        limit: u32,
        /// The average, in bytes, rounded down.
        avg: u32,
    },
}
