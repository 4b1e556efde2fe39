import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkPayment,
  explainReason,
  type FallbackPolicy,
  RESOLVE_REASONS,
  type ResolveFacts,
  resolveSeatKey,
  SeatKey,
  type StoreRead,
} from '../src/index.ts';
import { stored } from './world.ts';

const workspaceKey = new SeatKey('workspace-secret');
const found: StoreRead = { status: 'found', record: stored('seat-1', 'key-1') };
const unreadable: StoreRead = { status: 'unreadable', error: { fault: 'locked', exitCode: 36 } };
const base: ResolveFacts = { role: 'coder', mayHoldKey: true, seatId: 'seat-1', stored: found, workspaceKey };

describe('the key a role works under', () => {
  it('is its own when it is stored', () => {
    const resolution = resolveSeatKey(base);
    expect(resolution).toMatchObject({ kind: 'seat', seatId: 'seat-1' });
    expect(resolution.kind === 'seat' && resolution.key.reveal()).toBe('secret-of-seat-1');
  });

  it.each<[string, ResolveFacts]>([
    ['role_never_seated', { ...base, mayHoldKey: false }],
    ['seat_not_linked', { role: 'coder', mayHoldKey: true, workspaceKey, fallback: 'always' }],
    ['no_key_stored', { ...base, stored: { status: 'absent' }, fallback: 'always' }],
    ['store_unreadable', { ...base, stored: unreadable, fallback: 'always' }],
    ['key_rejected', { ...base, rejected: true, fallback: 'always' }],
  ])("is the workspace's by %s, and by nothing else", (reason, facts) => {
    const resolution = resolveSeatKey(facts);
    expect(resolution).toMatchObject({ kind: 'workspace', reason, key: workspaceKey });
    expect('storeError' in resolution).toBe(reason === 'store_unreadable');
  });

  it('keeps the error of the store that could not be read', () => {
    expect(resolveSeatKey({ ...base, stored: unreadable, fallback: 'always' })).toMatchObject({
      storeError: { fault: 'locked', exitCode: 36 },
    });
  });

  it.each<[FallbackPolicy | undefined, StoreRead, string]>([
    [undefined, { status: 'absent' }, 'refused'],
    ['never', { status: 'absent' }, 'refused'],
    ['missing_key', { status: 'absent' }, 'workspace'],
    ['missing_key', unreadable, 'refused'],
    ['always', unreadable, 'workspace'],
    [undefined, unreadable, 'refused'],
  ])('with fallback %s over %j is %s', (fallback, read, kind) => {
    expect(resolveSeatKey({ ...base, stored: read, ...(fallback === undefined ? {} : { fallback }) }).kind).toBe(kind);
  });

  it('has two wordings: what to run, or whom to ask', () => {
    for (const reason of ['seat_not_linked', 'no_key_stored', 'key_rejected'] as const) {
      expect(explainReason({ reason }, { role: 'coder', viewer: 'administrator' })).toContain('firecrew seat');
      expect(explainReason({ reason }, { role: 'coder', viewer: 'member' })).toContain('administrator of the workspace');
    }
    expect(
      explainReason({ reason: 'store_unreadable', storeError: { fault: 'locked', exitCode: 36 } }, { role: 'coder', viewer: 'member' }),
    ).toMatch(/does not mean that there is none.*exit code 36/);
  });

  it('never shows a secret in any of its results or texts', () => {
    const secret = fc.string({ minLength: 12, maxLength: 40 }).map((text) => `S3CR3T${text}`);
    fc.assert(
      fc.property(secret, fc.constantFrom<StoreRead>(found, { status: 'absent' }, unreadable), fc.boolean(), (value, read, rejected) => {
        const record = read.status === 'found' ? { ...read, record: { ...read.record, key: new SeatKey(value) } } : read;
        const resolution = resolveSeatKey({ ...base, stored: record, rejected, workspaceKey: new SeatKey(value), fallback: 'always' });
        return !`${JSON.stringify(resolution)}${'key' in resolution ? String(resolution.key) : ''}`.includes('S3CR3T');
      }),
    );
  });
});

describe('a backend that the workspace pays', () => {
  const turn = { role: 'coder', backend: 'some-agent', paidThroughWorkspace: true, workspaceConnected: true };
  const own = resolveSeatKey(base);
  const fallback = resolveSeatKey({ ...base, stored: { status: 'absent' }, fallback: 'always' });

  it("needs the seat's own key and a connected workspace, or nothing starts", () => {
    expect(checkPayment(own, turn)).toEqual({ verdict: 'allowed' });
    expect(checkPayment(fallback, turn)).toMatchObject({
      verdict: 'refused',
      reason: 'seat_key_required',
      message: expect.stringMatching(/coder.*some-agent/),
    });
    expect(checkPayment(own, { ...turn, workspaceConnected: false })).toMatchObject({ reason: 'workspace_not_connected' });
  });

  it('is no matter to a backend that pays otherwise', () => {
    expect(checkPayment(fallback, { ...turn, paidThroughWorkspace: false, workspaceConnected: false })).toEqual({ verdict: 'allowed' });
  });
});

describe('what others can see', () => {
  it('is fixed: the reasons', () => {
    expect(RESOLVE_REASONS).toEqual(['role_never_seated', 'seat_not_linked', 'no_key_stored', 'store_unreadable', 'key_rejected']);
  });
});
