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
)
