import { describe, expect, it } from 'vitest';
import { decideAfterRejection, decidePush } from '../src/index.ts';

const OURS = 'a'.repeat(40);
const THEIRS = 'b'.repeat(40);
const BRANCH = 'firecrew/x-12345678';
const SUFFIXED = `${BRANCH}-aaaaaaaa`;

describe('the push that is still to be made', () => {
  it.each([
    [{ lsRemoteSha: undefined }, 'create', BRANCH, 'absent'],
    [{ lsRemoteSha: OURS }, 'nothing', BRANCH, 'already_there'],
    [{ lsRemoteSha: THEIRS, remoteIsAncestor: true }, 'fast_forward', BRANCH, 'behind'],
    [{ lsRemoteSha: THEIRS, remoteIsAncestor: false }, 'create', SUFFIXED, 'diverged'],
    [{ lsRemoteSha: THEIRS }, 'create', SUFFIXED, 'diverged'],
    [{ lsRemoteSha: THEIRS, lsRemoteSuffixedSha: OURS }, 'nothing', SUFFIXED, 'diverged_already_there'],
    [{ lsRemoteSha: undefined, lsRemoteSuffixedSha: OURS }, 'nothing', SUFFIXED, 'diverged_already_there'],
    [{ lsRemoteSha: THEIRS, lsRemoteSuffixedSha: THEIRS }, 'refuse', SUFFIXED, 'diverged_name_taken'],
  ])('for %j is %s on %s: %s', (remote, action, branch, reason) => {
    expect(decidePush({ branch: BRANCH, ourSha: OURS, ...remote })).toEqual({ action, branch, reason, redirected: branch === SUFFIXED });
  });

  it('is none for a name that is no branch', () => {
    expect(decidePush({ branch: '-x', ourSha: OURS, lsRemoteSha: undefined })).toMatchObject({
      action: 'refuse',
      reason: 'invalid_branch',
    });
  });

  it('ends in one branch when it is asked again after any crash', () => {
    for (const start of [undefined, THEIRS]) {
      const first = decidePush({ branch: BRANCH, ourSha: OURS, lsRemoteSha: start });
      const after = first.redirected ? { lsRemoteSha: start, lsRemoteSuffixedSha: OURS } : { lsRemoteSha: OURS };
      expect(decidePush({ branch: BRANCH, ourSha: OURS, ...after })).toMatchObject({ action: 'nothing', branch: first.branch });
    }
  });

  it('goes to the suffixed branch once after a rejection, and then gives up', () => {
    const first = decidePush({ branch: BRANCH, ourSha: OURS, lsRemoteSha: undefined });
    const second = decideAfterRejection(first, OURS);
    expect(second).toEqual({ action: 'create', branch: SUFFIXED, reason: 'diverged', redirected: true });
    expect(decideAfterRejection(second, OURS)).toMatchObject({ action: 'refuse', branch: SUFFIXED });
  });
});
