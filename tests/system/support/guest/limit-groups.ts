// Runs as root in a guest, whose kernel has all of cgroup v2 whatever that of the host has.
import { tryLimitGroups } from '@firecrew/vmm/testing';

void tryLimitGroups().then((tried) => process.stdout.write(JSON.stringify(tried)));
