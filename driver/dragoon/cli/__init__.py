"""The commands and their output: data on stdout, the rest on stderr.

`main` is the entry point and knows every command by name only; a command's module is imported
when it runs, so that `dragoon --help` stays fast. `output` prints tables, JSON and YAML; `objects`
reads `pod/x`, `exits` has the exit codes and the command to type after an error.

May import: everything below; nothing imports this package. Invariants: exit codes are those of
`exits`; a table that is piped is plain text with aligned columns and is never wrapped.
"""
