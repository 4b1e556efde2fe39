import fc from 'fast-check';
import {
  type BatchPlacement,
  type BatchRequest,
  type BatchTurn,
  type Commitment,
  DEFAULT_SIZINGS,
  type Driver,
  MAX_HEALTH_AGE_MS,
  meetsFloor,
  type NodeRecord,
  rememberBaseline,
} from '../src/index.ts';
import { demandNoOvercommit, type Host, type Reading, type Vm } from './demand-no-overcommit.ts';

/** Who plans: the library, or a planner with a fault. */
export type Planner = (request: BatchRequest) => readonly BatchPlacement[];

/** What came up while a fleet was stepped. */
export interface Seen {
  placed: number;
  refused: number;
  /** Placements on a node that has or runs drivers of several sizes. */
  mixed: number;
  /** Placements beside something whose size or driver the placer does not know. */
  besideUnknown: number;
  remembered: number;
}

interface Turn {
  readonly memoryMib: number | undefined;
  readonly diskMib: number | undefined;
  readonly driver: Driver | undefined;
  readonly floor: Driver;
  readonly preferred: number | undefined;
  /** What the server forgets of a reservation, and the node never says. */
  readonly serverForgets: Forgets;
  readonly nodeForgets: Forgets;
}
interface Forgets {
  readonly size: boolean;
  readonly driver: boolean;
}
interface NewHost {
  readonly totalMib: number;
  readonly diskMib: number;
  readonly drivers: readonly Driver[];
  readonly ownPart: number;
}

/** One thing that happens to the fleet; `host` and `vm` are taken modulo what is there. */
export type Step =
  | { readonly do: 'nothing' }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'join'; readonly made: NewHost }
  | { readonly do: 'leave' | 'link' | 'drain' | 'remember' | 'bootAll'; readonly host: number }
  | { readonly do: 'own'; readonly host: number; readonly part: number }
  | { readonly do: 'drivers'; readonly host: number; readonly drivers: readonly Driver[] }
  | { readonly do: 'boot' | 'end' | 'orphan'; readonly host: number; readonly vm: number }
  | { readonly do: 'grow'; readonly host: number; readonly vm: number; readonly part: number }
  | { readonly do: 'read'; readonly host: number; readonly low: number; readonly lag: number; readonly blind: 'no' | 'vms' | 'disk' }
  | { readonly do: 'readAll' }
  | { readonly do: 'place'; readonly turns: readonly Turn[] };

/** The most that a host uses by itself, as a part of its memory. */
const OWN_PART = 0.4;

const at = fc.nat(63);
const part = fc.double({ min: 0, max: 1, noNaN: true });
const drivers = fc.constantFrom<readonly Driver[]>(['process'], ['process', 'qemu'], ['qemu', 'firecracker'], ['process', 'firecracker']);
const forgets = fc.record({ size: fc.boolean(), driver: fc.boolean() });
const driver = fc.constantFrom<Driver>('process', 'qemu', 'firecracker');
const turn: fc.Arbitrary<Turn> = fc.record({
  memoryMib: fc.option(fc.integer({ min: 64, max: 20_000 }), { nil: undefined, freq: 1 }),
  diskMib: fc.option(fc.integer({ min: 64, max: 40_000 }), { nil: undefined, freq: 1 }),
  driver: fc.option(driver, { nil: undefined }),
  floor: fc.constantFrom<Driver>('process', 'process', 'process', 'qemu', 'firecracker'),
  preferred: fc.option(at, { nil: undefined }),
  serverForgets: forgets,
  nodeForgets: forgets,
});
/** A host on which a few turns fit, or none. */
export const someHost: fc.Arbitrary<NewHost> = fc.record({
  totalMib: fc.integer({ min: 1024, max: 65_536 }),
  diskMib: fc.integer({ min: 1024, max: 200_000 }),
  drivers,
  ownPart: part.map((value) => value * OWN_PART),
});
const vmAt = { host: at, vm: at };
/** Any step; a failure is shrunk to as few as can be that do something. */
export const someStep: fc.Arbitrary<Step> = fc.oneof(
  { withCrossShrink: true },
  { weight: 1, arbitrary: fc.constant<Step>({ do: 'nothing' }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 20_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('join' as const), made: someHost }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('leave', 'link', 'drain'), host: at }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('remember', 'bootAll'), host: at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('own' as const), host: at, part }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('drivers' as const), host: at, drivers }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('boot', 'end', 'orphan'), ...vmAt }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('grow' as const), ...vmAt, part }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      host: at,
      low: fc.constantFrom(1, 1, 0.5, 0),
      lag: fc.constantFrom(0, 0, 1, 2),
      blind: fc.constantFrom('no', 'no', 'no', 'no', 'vms', 'disk'),
    }),
  },
  { weight: 6, arbitrary: fc.constant<Step>({ do: 'readAll' }) },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('place' as const), turns: fc.array(turn, { minLength: 1, maxLength: 4 }) }) },
);

/** A fleet with its truth beside what the placer is told. Throws as soon as a placement overcommits a host. */
export class SteppedFleet {
  readonly #hosts: Host[];
  readonly #plan: Planner;
  readonly #seen: Seen;
  #nowMs = 1_000_000;
  #made = 0;

  constructor(made: readonly NewHost[], plan: Planner, seen: Seen) {
    this.#plan = plan;
    this.#seen = seen;
    this.#hosts = made.map((each) => this.#join(each));
  }

  step(step: Step): void {
    if (step.do === 'wait') this.#nowMs += step.ms;
    else if (step.do === 'join') this.#hosts.push(this.#join(step.made));
    else if (step.do === 'readAll') for (const host of this.#hosts) this.#read(host, 1, 0, 'no');
    else if (step.do === 'place') this.#place(step.turns);
    else if (step.do !== 'nothing') {
      const host = this.#hosts[step.host % this.#hosts.length];
      if (host !== undefined) this.#stepHost(host, step);
    }
  }

  #stepHost(host: Host, step: Extract<Step, { host: number }>): void {
    switch (step.do) {
      case 'leave':
        this.#hosts.splice(this.#hosts.indexOf(host), 1);
        return;
      case 'link':
        host.connected = !host.connected;
        return;
      case 'drain':
        host.draining = !host.draining;
        return;
      case 'remember':
        this.#remember(host);
        return;
      case 'bootAll':
        for (const vm of host.vms) vm.booted = true;
        return;
      case 'own':
        host.ownMib = Math.floor(host.totalMib * step.part * OWN_PART);
        return;
      case 'drivers':
        host.drivers = step.drivers;
        return;
      case 'read':
        this.#read(host, step.low, step.lag, step.blind);
        return;
      default:
        this.#stepVm(host, step);
    }
  }

  #stepVm(host: Host, step: Extract<Step, { vm: number }>): void {
    const vm = host.vms[step.vm % host.vms.length];
    if (vm === undefined) return;
    if (step.do === 'boot') vm.booted = true;
    else if (step.do === 'grow' && vm.booted) {
      vm.touchedMib = Math.floor(vm.claim.memoryMib * step.part);
      vm.diskUsedMib = Math.max(vm.diskUsedMib, Math.floor(vm.claim.diskMib * step.part));
    } else if (step.do === 'end') {
      host.vms.splice(host.vms.indexOf(vm), 1);
      host.lastEndMs = this.#nowMs;
      // An ended VM is charged until a reading is without it.
      vm.reserved = false;
    } else if (step.do === 'orphan' && host.reading?.live.includes(vm) === true) {
      // The server lets go of what a reading has shown to live: from then on the node alone tells of it.
      vm.reserved = false;
    }
  }

  #join(made: NewHost): Host {
    const { totalMib, diskMib, drivers: offered, ownPart } = made;
    this.#made += 1;
    const ownMib = Math.floor(totalMib * ownPart);
    const facts = {
      draining: false,
      connected: true,
      vms: [],
      underWay: [],
      reading: undefined,
      remembered: undefined,
      lastEndMs: undefined,
    };
    return { id: `n${this.#made}`, totalMib, diskMib, drivers: offered, ownMib, ...facts };
  }

  /** Takes a reading, and delivers it or one that was taken before; none overtakes another. */
  #read(host: Host, low: number, lag: number, blind: 'no' | 'vms' | 'disk'): void {
    const live = host.vms.filter((vm) => vm.booted);
    const sum = (sizeOf: (vm: Vm) => number) => live.reduce((all, vm) => all + sizeOf(vm), 0);
    const used = Math.min(host.totalMib, host.ownMib + sum((vm) => vm.touchedMib));
    host.underWay.push({
      atMs: 0,
      usedMib: Math.floor(used * low),
      freeMib: blind === 'disk' ? undefined : Math.max(0, host.diskMib - sum((vm) => vm.diskUsedMib)),
      blind: blind === 'vms',
      live,
      diskUsed: new Map(live.map((vm) => [vm, vm.diskUsedMib])),
    });
    while (host.underWay.length > lag) {
      const delivered = host.underWay.shift();
      if (delivered !== undefined) host.reading = { ...delivered, atMs: this.#nowMs };
    }
  }

  #remember(host: Host): void {
    const idle = rememberBaseline({
      node: recordOf(host),
      nowMs: this.#nowMs,
      maxAgeMs: MAX_HEALTH_AGE_MS,
      settleMs: 0,
      ...(host.lastEndMs === undefined ? {} : { lastVmEndedAtMs: host.lastEndMs }),
    });
    if (idle === undefined) return;
    this.#seen.remembered += 1;
    host.remembered = idle;
  }

  #place(wanted: readonly Turn[]): void {
    this.#made += 1;
    const batch = this.#made;
    const turns = wanted.map((each, index): BatchTurn => ({ vmId: `v${batch}.${index}`, ...needOf(each, this.#hosts) }));
    const answers = this.#plan({ turns, nodes: this.#hosts.map(recordOf), nowMs: this.#nowMs });
    for (const [index, { vmId, placement }] of answers.entries()) {
      const asked = wanted[index];
      const host = placement.verdict === 'chosen' ? this.#hosts.find((each) => each.id === placement.nodeId) : undefined;
      if (placement.verdict !== 'chosen' || asked === undefined || host === undefined) {
        this.#seen.refused += 1;
        continue;
      }
      const { driver: chosen } = placement;
      if (!meetsFloor(chosen, asked.floor)) throw new Error(`${vmId} is placed below its floor`);
      this.#note(host);
      host.vms.push(vmOf(vmId, chosen, asked));
      demandNoOvercommit(host, chosen, this.#nowMs);
    }
  }

  #note(host: Host): void {
    const known = [...host.drivers, ...host.vms.map((vm) => vm.driver)];
    this.#seen.placed += 1;
    if (known.includes('process') && known.some((each) => each !== 'process')) this.#seen.mixed += 1;
    if (host.vms.some((vm) => vm.serverForgets.size || vm.serverForgets.driver)) this.#seen.besideUnknown += 1;
  }
}

function needOf(asked: Turn, hosts: readonly Host[]): Omit<BatchTurn, 'vmId'> {
  const preferred = asked.preferred === undefined ? undefined : hosts[asked.preferred % (hosts.length + 1)]?.id;
  return {
    demand: {
      ...(asked.memoryMib === undefined ? {} : { memoryMib: asked.memoryMib }),
      ...(asked.diskMib === undefined ? {} : { diskMib: asked.diskMib }),
    },
    backends: [],
    driverFloor: asked.floor,
    ...(asked.driver === undefined ? {} : { driver: asked.driver }),
    ...(preferred === undefined ? {} : { preferred }),
  };
}

/** What is really started: what was asked for, else the driver's default. Only a default can be forgotten and still be known. */
function vmOf(id: string, chosen: Driver, asked: Turn): Vm {
  const sizing = DEFAULT_SIZINGS[chosen];
  const isDefault = asked.memoryMib === undefined && asked.diskMib === undefined;
  const keep = (forgotten: Forgets): Forgets => ({ size: forgotten.size && isDefault, driver: forgotten.driver });
  return {
    id,
    driver: chosen,
    claim: { memoryMib: (asked.memoryMib ?? sizing.memoryPerVmMib) + sizing.overheadMib, diskMib: asked.diskMib ?? sizing.diskPerVmMib },
    serverForgets: keep(asked.serverForgets),
    nodeForgets: keep(asked.nodeForgets),
    reserved: true,
    booted: false,
    touchedMib: 0,
    diskUsedMib: 0,
  };
}

/** The host as the placer is told of it. */
function recordOf(host: Host): NodeRecord {
  const { reading, remembered } = host;
  const told = (vm: Vm, forgotten: Forgets): Commitment => ({
    vmId: vm.id,
    ...(forgotten.size ? {} : vm.claim),
    ...(forgotten.driver ? {} : { driver: vm.driver }),
  });
  return {
    id: host.id,
    name: host.id,
    draining: host.draining,
    connected: host.connected,
    drivers: host.drivers,
    images: {},
    reserved: host.vms.filter((vm) => vm.reserved).map((vm) => told(vm, vm.serverForgets)),
    live: reading?.blind === false ? { status: 'known', vms: liveOf(reading, told) } : { status: 'unknown', error: 'not said' },
    ...(remembered === undefined ? {} : { rememberedBaselineMib: remembered }),
    ...(reading === undefined ? {} : { health: healthOf(host, reading) }),
  };
}

function liveOf(reading: Reading, told: (vm: Vm, forgotten: Forgets) => Commitment): Commitment[] {
  return reading.live.map((vm) => ({ ...told(vm, vm.nodeForgets), diskUsedMib: reading.diskUsed.get(vm) ?? 0 }));
}

function healthOf(host: Host, reading: Reading): NonNullable<NodeRecord['health']> {
  const { atMs, usedMib, freeMib } = reading;
  const disk = freeMib === undefined ? {} : { diskFreeMib: freeMib };
  return { atMs, memoryTotalMib: host.totalMib, memoryUsedMib: usedMib, ...disk };
}
