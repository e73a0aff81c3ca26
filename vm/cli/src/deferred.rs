//! Options of a subcommand that are declared only when the subcommand is used. Declaring those of all five subcommands
//! takes longer than validating a small module.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// `T`, declared late.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub T);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| {
            // Declaring options replaces the subcommand's own help text by that of `T`; keep the former.
            let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
            let mut command = T::augment_args(command);
            if let Some(about) = about {
                command = command.about(about);
            }
            command.long_about(long_about.map_or(Resettable::Reset, Resettable::Value))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Deferred<T>, Error> {
        T::from_arg_matches(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
