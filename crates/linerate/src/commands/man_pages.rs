//! Man pages: one for each command and for each tool whose command line we speak, in the macros of man(7).

use std::path::Path;
use std::{fs, io};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Cli;
use crate::personality::{PERSONALITIES, Personality};

/// Writes `linerate.1` and a page for each command and tool.
///
/// # Errors
/// What the system says.
pub(super) fn write_pages(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut root = Cli::command();
    root.build();
    let commands = root.get_subcommands().filter(|command| command.get_name() != "help");
    for command in std::iter::once(&root).chain(commands) {
        // What `-h` leaves out stands in a page, with its description.
        let whole = command.clone().mut_args(|flag| flag.hide_short_help(false));
        let man = Man::new(whole);
        let mut page = Vec::new();
        man.render(&mut page)?;
        page.extend(render_examples(command).into_bytes());
        fs::write(directory.join(man.get_filename()), page)?;
    }
    for tool in PERSONALITIES {
        fs::write(directory.join(format!("linerate-{}.1", tool.name)), render_tool(tool))?;
    }
    Ok(())
}

/// The section of the examples that `--help` begins with.
fn render_examples(command: &Command) -> String {
    let help = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let lines: Vec<&str> = help.lines().skip_while(|line| *line == "Examples:").collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(".SH EXAMPLES\n{}", render_as_it_is(&lines.join("\n")))
}

fn render_tool(tool: &Personality) -> String {
    let Personality { name, about, examples, render_help, .. } = tool;
    let upper = name.to_uppercase();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        ".TH LINERATE-{upper} 1 \"\" \"linerate {version}\"\n\
         .SH NAME\nlinerate\\-{name} \\- {about}\n\
         .SH SYNOPSIS\n\\fBlinerate {name}\\fR [\\fIoptions\\fR]\n\
         .SH DESCRIPTION\nTakes the options of {name}, prints its output and has its exit codes. \
         A link of the name {name} to linerate does the same.\n\
         .SH EXAMPLES\n{}.SH OPTIONS\n{}.SH SEE ALSO\n\\fBlinerate\\fR(1)\n",
        render_as_it_is(examples),
        render_as_it_is(&render_help()),
    )
}

/// Lines that are not filled, each as it is: no macro, no escape of roff.
fn render_as_it_is(text: &str) -> String {
    let escaped = text.trim_matches('\n').replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped.lines().map(|line| match line.as_bytes() {
        [b'.' | b'\'', ..] => format!("\\&{line}\n"),
        _ => format!("{line}\n"),
    });
    format!(".nf\n{}.fi\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_taken_for_a_macro_or_an_escape() {
        assert_eq!(render_as_it_is("\n.x\n'y \\n -z\n"), ".nf\n\\&.x\n\\&'y \\en \\-z\n.fi\n");
    }
}
