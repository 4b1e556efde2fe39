export { buildProgram, type Invocation } from './build-program.ts';
export { EXIT } from './exit-codes.ts';
export { type ProgramCall, runProgram } from './program.ts';
