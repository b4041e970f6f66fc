"""The verbs of the `msc` command, one module each, imported when the verb is used."""
