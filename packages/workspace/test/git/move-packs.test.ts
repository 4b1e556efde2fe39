import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MissionRepository } from '../../src/git/index.ts';
import { missionScratch } from './mission-scratch.ts';
import { git } from './scratch.ts';

const { place, importOver } = missionScratch();

describe('packs', () => {
  it('arrive in a repository whose path git would read as a list', async () => {
    const { repository, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    await repository.packFor(done.commit, {}, place.path('all.pack'));
    const odd = place.path('a:b "c" \\d');
    mkdirSync(odd);
    const other = await MissionRepository.init(join(odd, 'other.git'));
    await other.importPack(place.path('all.pack'), { head: done.commit });
    await repository.packFor(done.commit, { not: [done.commit] }, place.path('thin.pack'));
    await other.importPack(place.path('thin.pack'), { head: done.commit });
  });

  it('carry a result to a repository that holds the base', async () => {
    const { repository, base, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    await repository.packFor(done.commit, { not: [base] }, place.path('out.pack'));
    git(place.path('source'), ['index-pack', '--stdin', '--strict'], readFileSync(place.path('out.pack')));
    expect(git(place.path('source'), ['cat-file', 'blob', `${done.commit}:a`])).toBe('2');
  });

  it('rebuild the repository elsewhere, and are refused when something is missing or broken', async () => {
    const { repository, base, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    await repository.packFor(done.commit, {}, place.path('all.pack'));
    await repository.packFor(done.commit, { not: [base] }, place.path('thin.pack'));
    const other = await MissionRepository.init(place.path('other.git'));
    await other.importPack(place.path('all.pack'), { head: done.commit });
    expect(await other.isAncestor(base, done.commit)).toBe(true);
    expect(await other.isAncestor(done.commit, base)).toBe(false);
    expect(await other.isAncestor('1'.repeat(40), base)).toBeUndefined();
    const third = await MissionRepository.init(place.path('third.git'));
    await expect(third.importPack(place.path('thin.pack'), { head: done.commit })).rejects.toMatchObject({ code: 'pack_incomplete' });
    writeFileSync(place.path('bad.pack'), 'PACK nonsense');
    await expect(third.importPack(place.path('bad.pack'))).rejects.toMatchObject({ code: 'pack_unreadable' });
    await expect(third.importPack(place.path('all.pack'), { shallow: Buffer.from('-x\n') })).rejects.toMatchObject({
      code: 'shallow_malformed',
    });
    const objects = join(place.path('third.git'), 'objects');
    expect(readdirSync(objects).filter((name) => name.startsWith('tmp_'))).toEqual([]);
    await expect(third.packFor('HEAD', {}, place.path('x.pack'))).rejects.toMatchObject({ code: 'commit_id_malformed' });
  });
});
