/** Longest single argument or `NAME=value` string, in bytes without its NUL: the kernel's limit is 131,072 with it. */
export const MAX_STRING_BYTES = 131_071;
/** Most arguments of one command. */
export const MAX_ARGUMENTS = 4096;
/** All arguments of one command together, in bytes with their NULs. */
export const MAX_ARGUMENTS_BYTES = 1_048_576;
/** Most entries of one environment. */
export const MAX_ENVIRONMENT_ENTRIES = 1024;
/** All entries of one environment together, in bytes with `=` and NUL each: half of the kernel's usual 2 MiB, shared with the arguments. */
export const MAX_ENVIRONMENT_BYTES = 917_504;
/** Longest path, in bytes. */
export const MAX_PATH_BYTES = 4095;
