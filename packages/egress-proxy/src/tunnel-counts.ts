import type { EgressProxyLimits } from './limits.ts';

/** How many tunnels are open or being opened, in all and for each host. */
export class TunnelCounts {
  private readonly limits: Pick<EgressProxyLimits, 'tunnels' | 'tunnelsPerHost'>;
  private readonly perHost = new Map<string, number>();
  private all = 0;

  constructor(limits: Pick<EgressProxyLimits, 'tunnels' | 'tunnelsPerHost'>) {
    this.limits = limits;
  }

  get open(): number {
    return this.all;
  }

  /** Takes a place, or says which bound is reached. */
  take(host: string): 'taken' | 'tunnels_busy' | 'host_busy' {
    const forHost = this.perHost.get(host) ?? 0;
    if (this.all >= this.limits.tunnels) return 'tunnels_busy';
    if (forHost >= this.limits.tunnelsPerHost) return 'host_busy';
    this.all += 1;
    this.perHost.set(host, forHost + 1);
    return 'taken';
  }

  release(host: string): void {
    const left = (this.perHost.get(host) ?? 1) - 1;
    this.all -= 1;
    if (left === 0) this.perHost.delete(host);
    else this.perHost.set(host, left);
  }
}
