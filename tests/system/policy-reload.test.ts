import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TurnEventBody } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const OPEN = 'version: 1\npreset: open\n';
const ELSEWHERE = 'version: 1\npreset: open\nceiling: { run: [other.example] }\n';
/** Holds one tunnel open and says when it is cut; asks for another one again and again, and says each other answer that it gets. */
const ASK = `const http = require('node:http');
const proxy = new URL(process.env.HTTPS_PROXY);
const target = 'localhost:' + process.argv[2];
const connect = (open, refused) => {
  const call = http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: target, headers: { host: target } });
  call.on('connect', (answer, socket) => (answer.statusCode === 200 ? open(socket) : refused(String(answer.headers['x-firecrew-reason']))));
  call.on('error', (error) => refused(error.code));
  call.end();
};
let last = '';
const tell = (text) => { if (text !== last) console.log('told ' + (last = text)); setTimeout(ask, 50); };
const ask = () => connect((socket) => { socket.destroy(); tell('open'); }, tell);
const hold = (socket) => {
  socket.on('error', () => undefined);
  socket.on('close', () => console.log('cut'));
  socket.resume();
  socket.write('held-' + process.argv[2] + ' held\\n');
  ask();
};
connect(hold, (reason) => console.log('never opened: ' + reason));
`;

let folder: string;
let installation: Installation;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fcs-policy-'));
  await place(OPEN);
  installation = await Installation.start({ bubblewrap: 'off', server: { policyFile: join(folder, 'policy.yaml') } });
});
afterAll(async () => {
  try {
    await installation?.stop();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** Puts a policy file where the server looks, as a whole. */
async function place(text: string): Promise<void> {
  await writeFile(join(folder, 'next.yaml'), text);
  await rename(join(folder, 'next.yaml'), join(folder, 'policy.yaml'));
}

/** What the agent was answered, one for each change. A question that was under way when the policy changed may be answered with that. */
function answersOf(log: string): string[] {
  const told = [...log.matchAll(/told (\w+)/g)].map(([, answer = '']) => answer);
  return told.filter((answer) => answer !== 'policy_changed').filter((answer, at, all) => answer !== all[at - 1]);
}

/** How often the server says that it took another policy. */
const replacements = () => installation.server.logTail(10_000).split('the policy was replaced').length - 1;

describe('a policy that is changed while an agent works', () => {
  it('is followed by the running turn: new tunnels at once, open ones are cut; one that cannot be used changes nothing', async () => {
    const repository = await makeRepository(join(folder, 'repository'), { 'ask.js': ASK });
    const { id } = await installation.startMission({ repository, agent: `node ask.js ${installation.witness.port}` });
    const log = async () => (await installation.log(id, 1)).toString();
    const told = async () => answersOf(await log());
    await until('an open tunnel', async () => (await told()).length === 1);
    await place('version: 1\npreset: open\nceilng: { run: [] }\n');
    await until('the fault in the log of the server', () => installation.server.logTail().includes('cannot be used'));
    expect([await told(), (await log()).includes('cut')]).toEqual([['open'], false]);

    await place(ELSEWHERE);
    await until('the refusal', async () => (await told()).length === 2);
    await until('the end of the open tunnel', async () => (await log()).includes('cut'));
    expect(await told()).toEqual(['open', 'empty_list']);

    // Without a look by itself: the operator says that there is something to look at.
    await place(OPEN);
    process.kill(installation.server.pid, 'SIGHUP');
    await until('the way back', async () => (await told()).length === 3);
    expect(await told()).toEqual(['open', 'empty_list', 'open']);

    // The log may be here before the events of the same moment.
    const bodies = async () => (await installation.events(id)).flatMap((body) => (body.kind === 'turn.event' ? [body.body] : []));
    const replaced = async () => (await bodies()).filter((body) => body.kind === 'notice' && body.code === 'egress_policy_replaced').length;
    await until('both changes in the timeline', async () => (await replaced()) === 2);
    const isCut = (body: TurnEventBody) => body.kind === 'egress' && body.line.event === 'end' && body.line.reason === 'policy_changed';
    await until('the end of the tunnel in the audit', async () => (await bodies()).some(isCut));
    await installation.client.cancel(id);
    await installation.ended(id);
  });

  it('bounds what a running turn may open, counts what it opened before, and says which budget is spent', async () => {
    const repository = await makeRepository(join(folder, 'bounded'), { 'ask.js': ASK });
    const before = replacements();
    await place(`${OPEN}budgets: { turn: { connections: 2 } }\n`);
    await until('the budget in the log of the server', () => replacements() === before + 1);
    const { id } = await installation.startMission({ repository, agent: `node ask.js ${installation.witness.port}` });
    const told = async () => answersOf((await installation.log(id, 1)).toString());
    await until('the refusal', async () => (await told()).includes('turn_connections_spent'));
    expect(await told()).toEqual(['open', 'turn_connections_spent']);
    await place(`${OPEN}budgets: { turn: { connections: 100000 } }\n`);
    await until('the way back', async () => (await told()).length === 3);
    expect(await told()).toEqual(['open', 'turn_connections_spent', 'open']);
    const lines = (await installation.events(id)).flatMap((body) =>
      body.kind === 'turn.event' && body.body.kind === 'egress' && body.body.line.event === 'refused' ? [body.body.line] : [],
    );
    expect(lines[0]).toMatchObject({ verdict: 'denied', reason: 'turn_connections_spent', rule: 'budget turn: 2 connections' });
    await place(OPEN);
    await installation.client.cancel(id);
    await installation.ended(id);
  });

  it('is followed by a turn whose node was away when it changed', async () => {
    const repository = await makeRepository(join(folder, 'again'), { 'ask.js': ASK });
    const { id } = await installation.startMission({ repository, agent: `node ask.js ${installation.witness.port}` });
    const told = async () => answersOf((await installation.log(id, 1)).toString());
    await until('an open tunnel', async () => (await told()).length === 1);
    const before = replacements();
    await installation.node.end('SIGKILL');
    await place(ELSEWHERE);
    await until('the change in the log of the server', () => replacements() === before + 1);
    installation.node.start();
    await until('the refusal', async () => (await told()).length === 2);
    expect(await told()).toEqual(['open', 'empty_list']);
    await place(OPEN);
    await installation.client.cancel(id);
    await installation.ended(id);
  });
});
