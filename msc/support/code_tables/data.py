"""MSC13xx: data sets in files."""

from msc.support.code_tables.entry import Code

CODES = (
    Code(
        "MSC1310",
        "MindRecord file that cannot be read",
        "A MindRecord file and its index `NAME.db` are written together and must stay together. The message says which "
        "of the two is damaged, and what does not fit: the header, the number of rows, a place in the file, or a row.",
    ),
    Code(
        "MSC1311",
        "rows that MindRecord cannot hold",
        "`FileWriter` writes rows that have all fields of its schema, with values of their types: int32, int64, "
        "float32, float64, string, bytes, and arrays of numbers that have a shape. It replaces files if told so.",
    ),
    Code(
        "MSC1312",
        "rows that nobody lets through",
        "`sync_wait` holds rows back until `sync_update` is called with its condition. It was not called for as long "
        "as `ds.config.set_callback_timeout` says. An iterator reads ahead, and waits there.",
    ),
    Code(
        "MSC1313",
        "a row that cannot be read or mapped",
        "`ds.config.set_error_samples_mode` asks to leave such rows out, or to put another row in their place. The "
        "message has the error, with the file that is damaged.",
    ),
)
