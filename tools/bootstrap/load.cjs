// Apart from start.cjs because `import()` itself is a syntax error in the versions that file refuses.
'use strict';
import('../bootstrap.mjs')
  .then((bootstrap) => bootstrap.main(process.argv.slice(2)))
  .then(
    (code) => {
      process.exitCode = code;
    },
    (error) => {
      console.error(`firecrew: ${error?.friendly === true ? error.message : (error?.stack ?? String(error))}`);
      process.exitCode = error?.exitCode ?? 1;
    },
  );
