//! The command line as a value. Usage errors are one line that begins `woc: `, then the usage.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use diagnostics::render::Format;

use crate::output;

pub const USAGE: i32 = 2;

const USAGE_TEXT: &str = "\
usage: woc PATH                      build a program, check a library, a directory or a single file
       woc check PATH                report every diagnostic, write nothing
       woc run PATH [-- ARG...]      compile in memory and run
       woc build PATH [-o OUT]       make one executable; OUT is target/NAME if not given
       woc test [PATH] [--filter TEXT]
                                     run each test block, or those with TEXT in their names
       woc new [--lib] NAME          make a directory with a program or library to start from
       woc fmt [--check] PATH...     rewrite files in canonical form, or list those that would change
       woc dump STAGE PATH           STAGE: tokens, ast, hir, gc, plan, mir, clif, asm
       woc db stat [--json] DIR      sizes and counters of a program's store
       woc db check DIR              verify every record and row of it
       woc db dump [--table CLASS] DIR
                                     its rows, a JSON object each
       woc --update-deps DIR         fetch the git dependencies again and rewrite wo.lock
       woc version
       woc help
options: -D NAME (defines a build flag, repeatable), --format human|short|json
";

/// What to do, with every option resolved.
#[derive(Clone, Debug)]
pub struct Invocation {
    pub action: Action,
    /// Build flags of `-D`.
    pub flags: Vec<String>,
    pub format: Format,
    pub passes: mir::Passes,
}

#[derive(Clone, Debug)]
pub enum Action {
    /// `woc PATH`: builds a program, checks everything else.
    Make(PathBuf),
    Check(PathBuf),
    Build {
        path: PathBuf,
        /// `target/NAME` in the project if not given.
        output: Option<PathBuf>,
    },
    Test {
        path: PathBuf,
        filter: Option<String>,
        /// Runs the test of this number as the program, in this process: `woc test` starts itself so for each test.
        only: Option<usize>,
    },
    New {
        name: OsString,
        library: bool,
    },
    UpdateDeps(PathBuf),
    Run {
        path: PathBuf,
        args: Vec<OsString>,
    },
    Dump {
        stage: Stage,
        path: PathBuf,
    },
    Fmt {
        paths: Vec<PathBuf>,
        /// List what would change instead of changing it.
        check: bool,
    },
    Db(Db),
    Version,
    Help,
}

/// What to do with a store.
#[derive(Clone, Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum Db {
    Stat {
        dir: PathBuf,
        #[arg(long)]
        json: bool,
    },
    Check {
        dir: PathBuf,
    },
    Dump {
        dir: PathBuf,
        #[arg(long, value_name = "CLASS")]
        table: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    Tokens,
    Ast,
    Hir,
    Gc,
    Plan,
    Mir,
    Clif,
    Asm,
}

#[derive(Parser)]
#[command(name = "woc", disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Option<Command>,
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    #[arg(short = 'V', long)]
    version: bool,
}

#[derive(Args)]
struct Common {
    #[arg(short = 'D', value_name = "NAME", global = true)]
    define: Vec<String>,
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human", global = true)]
    format: FormatName,
    /// Switches optimisation off, as `WO_OPT=0` does.
    #[arg(long, hide = true, global = true)]
    no_opt: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    Human,
    Short,
    Json,
}

#[derive(Subcommand)]
enum Command {
    Check {
        path: PathBuf,
    },
    Run {
        path: PathBuf,
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    Dump {
        #[arg(value_enum)]
        stage: Stage,
        path: PathBuf,
    },
    Version,
    Help,
    Build {
        path: PathBuf,
        #[arg(short = 'o', value_name = "OUT")]
        output: Option<PathBuf>,
    },
    Test {
        #[arg(default_value = ".")]
        path: PathBuf,
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        filter: Option<String>,
        #[arg(long, hide = true)]
        only: Option<usize>,
    },
    Fmt {
        #[arg(long)]
        check: bool,
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    New {
        #[arg(long)]
        lib: bool,
        name: OsString,
    },
    Db {
        #[command(subcommand)]
        command: Db,
    },
    #[command(hide = true)]
    UpdateDeps {
        dir: PathBuf,
    },
}

/// Reads `args` (with the program's name first). Prints usage errors and gives their exit status.
pub fn parse(args: Vec<OsString>) -> Result<Invocation, i32> {
    if let Some(text) = unknown_command(&args) {
        return Err(usage_error(&text));
    }
    let is_run = args.get(1).is_some_and(|word| word == "run");
    let cli = match Cli::try_parse_from(accepted_spellings(args)) {
        Ok(cli) => cli,
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp) => return Ok(plain(Action::Help)),
        Err(e) if is_run && matches!(e.kind(), ErrorKind::UnknownArgument) => {
            let text = first_paragraph(&e.to_string());
            return Err(usage_error(&format!("{text}: what the program shall get stands behind `--`")));
        }
        // Without its subcommand clap would show the description of `Db`.
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) => {
            return Err(usage_error("`db` needs `stat`, `check` or `dump`, and the directory of a store"));
        }
        Err(e) => return Err(usage_error(&first_paragraph(&e.to_string()))),
    };
    if let Some(bad) = cli.common.define.iter().find(|name| !is_flag_name(name)) {
        return Err(usage_error(&format!("-D needs the name of a build flag, not `{bad}`")));
    }
    if cli.command.is_some() && cli.path.is_some() {
        return Err(usage_error("a PATH before a command"));
    }
    let action = match (cli.command, cli.path) {
        _ if cli.version => Action::Version,
        (None, Some(path)) => Action::Make(path),
        (Some(Command::Check { path }), _) => Action::Check(path),
        (Some(Command::Run { path, args }), _) => Action::Run { path, args },
        (Some(Command::Dump { stage, path }), _) => Action::Dump { stage, path },
        (Some(Command::Version), _) => Action::Version,
        (Some(Command::Help), _) => Action::Help,
        (Some(Command::Build { path, output }), _) => Action::Build { path, output },
        (Some(Command::Test { path, filter, only }), _) => Action::Test { path, filter, only },
        (Some(Command::Fmt { check, paths }), _) => Action::Fmt { paths, check },
        (Some(Command::New { lib, name }), _) => Action::New { name, library: lib },
        (Some(Command::Db { command }), _) => Action::Db(command),
        (Some(Command::UpdateDeps { dir }), _) => Action::UpdateDeps(dir),
        (None, None) => return Err(usage_error("a PATH or a command is missing")),
    };
    let format = match cli.common.format {
        FormatName::Human => Format::Human,
        FormatName::Short => Format::Short,
        FormatName::Json => Format::Json,
    };
    let passes = if cli.common.no_opt { mir::Passes::NONE } else { passes_of_environment()? };
    Ok(Invocation { action, flags: cli.common.define, format, passes })
}

/// The optimisations that `WO_OPT` leaves: `0` none, `-NAME,…` all but those.
fn passes_of_environment() -> Result<mir::Passes, i32> {
    let value = std::env::var_os("WO_OPT").unwrap_or_default();
    let passes = value.to_str().and_then(mir::Passes::parse);
    passes.ok_or_else(|| usage_error("WO_OPT is 0, 1 or a list of -fold, -borrow, -inline, -counts, -checks"))
}

pub fn help_text() -> &'static str {
    USAGE_TEXT
}

fn plain(action: Action) -> Invocation {
    Invocation { action, flags: Vec::new(), format: Format::Human, passes: mir::Passes::ALL }
}

/// Prints one line and the usage; gives the exit status.
pub fn usage_error(text: &str) -> i32 {
    output::stderr(&format!("woc: {}\n{USAGE_TEXT}", text.replace(char::is_control, " ")));
    USAGE
}

/// What to say of a first word that is neither a command nor a path: with words behind it, or almost a command.
fn unknown_command(args: &[OsString]) -> Option<String> {
    let word = args.get(1)?.to_str().filter(|word| !word.starts_with('-'))?;
    let commands = Cli::command();
    let mut names = commands.get_subcommands().map(clap::Command::get_name);
    if names.any(|name| name == word) || std::fs::symlink_metadata(word).is_ok() {
        return None;
    }
    let visible = commands.get_subcommands().filter(|command| !command.is_hide_set());
    let near = analysis::nearest(word, visible.map(clap::Command::get_name));
    let is_followed = args.get(2).is_some_and(|next| !next.to_string_lossy().starts_with('-'));
    match near {
        Some(near) => Some(format!("unknown command `{word}`: did you mean `{near}`?")),
        None => is_followed.then(|| format!("unknown command `{word}`")),
    }
}

/// `--dump-gc PATH` is `dump gc PATH`, `--update-deps` a command; nothing is touched behind `--`.
fn accepted_spellings(args: Vec<OsString>) -> Vec<OsString> {
    let mut out = Vec::with_capacity(args.len() + 1);
    let mut rest = args.into_iter();
    while let Some(arg) = rest.next() {
        match arg.to_str() {
            Some("--") => {
                out.push(arg);
                out.extend(rest);
                break;
            }
            Some("--update-deps") => out.push("update-deps".into()),
            Some(text) if text.starts_with("--dump-") => {
                out.push("dump".into());
                out.push(text.trim_start_matches("--dump-").into());
            }
            _ => out.push(arg),
        }
    }
    out
}

/// The message of a clap error without its prefix and its own usage text.
fn first_paragraph(text: &str) -> String {
    let body = text.strip_prefix("error: ").unwrap_or(text);
    let lines: Vec<&str> = body.lines().map(str::trim).take_while(|l| !l.is_empty()).collect();
    lines.join(" ")
}

fn is_flag_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
