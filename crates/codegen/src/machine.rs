//! The machine that code is made for: this one, or every one that a built program may be carried to.

use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};

use crate::Options;

/// Which instructions code may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Machine {
    /// All that this machine has.
    #[default]
    Host,
    /// Those of x86-64-v2, which processors have had since 2009: see `missing_features`.
    Baseline,
}

const BASELINE: &str = "x86-64-v2";

/// `quick`: linear algorithms only.
pub(crate) fn isa(options: &Options, quick: bool) -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", if options.optimize && !quick { "speed" } else { "none" }),
        ("regalloc_algorithm", if quick { "single_pass" } else { "backtracking" }),
        ("enable_verifier", if options.verify { "true" } else { "false" }),
        ("preserve_frame_pointers", "true"),
        ("is_pic", "false"),
        ("enable_probestack", "false"),
        ("unwind_info", "false"),
    ] {
        flags.set(name, value).map_err(|e| format!("Cranelift setting `{name}`: {e}"))?;
    }
    // Stubs and frames are written for this architecture alone.
    if !cfg!(target_arch = "x86_64") {
        return Err("this machine is not supported: only x86-64 is".to_string());
    }
    let mut builder = match options.machine {
        Machine::Host => cranelift_native::builder().map_err(|e| format!("this machine is not supported: {e}"))?,
        Machine::Baseline => isa::lookup_by_name("x86_64-unknown-linux-gnu").map_err(|e| format!("Cranelift: {e}"))?,
    };
    if options.machine == Machine::Baseline {
        builder.enable(BASELINE).map_err(|e| format!("Cranelift setting `{BASELINE}`: {e}"))?;
    }
    builder.finish(settings::Flags::new(flags)).map_err(|e| format!("Cranelift: {e}"))
}

/// What this processor lacks for code of `Machine::Baseline`.
#[must_use]
pub fn missing_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let found = [
        ("SSE3", std::is_x86_feature_detected!("sse3")),
        ("SSSE3", std::is_x86_feature_detected!("ssse3")),
        ("SSE4.1", std::is_x86_feature_detected!("sse4.1")),
        ("SSE4.2", std::is_x86_feature_detected!("sse4.2")),
        ("POPCNT", std::is_x86_feature_detected!("popcnt")),
        ("CMPXCHG16B", std::is_x86_feature_detected!("cmpxchg16b")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let found = [(BASELINE, false)];
    found.into_iter().filter(|(_, there)| !there).map(|(name, _)| name).collect()
}
