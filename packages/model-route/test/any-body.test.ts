import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkBody, decideHead, MODEL_FEATURES, MODEL_FORMATS, type ModelFormat, readUsage } from '../src/index.ts';

type Format = Exclude<ModelFormat, 'pass_through'>;
const FORMATS = MODEL_FORMATS.filter((format): format is Format => format !== 'pass_through');

const NAMES =
  'model messages input contents system systemInstruction system_instruction tools type content role parts text source url image_url fileData fileUri file_id store stream stream_options max_tokens max_output_tokens n generationConfig maxOutputTokens candidateCount usage usageMetadata input_tokens output response environment requests params custom_id batch inputConfig request fileName input_file_id endpoint items __proto__ constructor toString'.split(
    ' ',
  );
const WORDS = [
  'message',
  'text',
  'image',
  'document',
  'base64',
  'url',
  'content',
  'tool_result',
  'function',
  'shell',
  'namespace',
  'user',
  'm',
  '',
];

const KINDS = fc.constantFrom('generate' as const, 'count' as const, 'batch' as const, 'store' as const);

/** JSON that looks like requests and answers: their names and words at every place. */
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, false, 0, 1, -1, 1.5, 1e300, 'x', ...WORDS),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.array(fc.tuple(fc.constantFrom(...NAMES), tie('tree')), { maxLength: 5 }).map((entries) => {
      const object: Record<string, unknown> = Object.create(null);
      for (const [name, value] of entries) object[name] = value;
      return object;
    }),
  ),
}));

describe('whatever comes', () => {
  it('as a body is judged without a throw, and what passes holds its own judgement', () => {
    fc.assert(
      fc.property(fc.constantFrom(...FORMATS), KINDS, tree, fc.subarray([...MODEL_FEATURES]), (format, kind, value, features) => {
        const rules = { format, kind, features, models: null, outputCap: 100, model: undefined, streams: false } as const;
        const judge = (text: string) => checkBody(new TextEncoder().encode(text), rules);
        const result = judge(JSON.stringify(value) ?? 'null');
        if (result.verdict === 'refused') return;
        // Judged again, what goes up passes as it is.
        expect(judge(result.text)).toMatchObject({ verdict: 'allowed', text: result.text });
      }),
      { numRuns: 3_000 },
    );
  });

  it('as an answer is read without a throw, and no number is made up', () => {
    fc.assert(
      fc.property(fc.constantFrom(...FORMATS), tree, (format, value) => {
        const seen = readUsage(format, value);
        for (const count of Object.values(seen?.usage ?? {})) expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
      }),
      { numRuns: 3_000 },
    );
  });

  it('as a head is judged without a throw', () => {
    const text = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.constantFrom('/v1/messages', 'POST', 'Content-Length', 'Transfer-Encoding', 'chunked', '5', '/v1/a?b=c'),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...MODEL_FORMATS),
        text,
        text,
        fc.array(text, { maxLength: 12 }),
        (format, method, target, rawHeaders) => {
          const result = decideHead(
            { method, target, rawHeaders },
            { format, features: [...MODEL_FEATURES], bodyMaxBytes: 100, uploadMaxBytes: 200 },
          );
          expect(['allowed', 'refused']).toContain(result.verdict);
          // What goes up is a plain path of the upstream.
          if (result.verdict === 'allowed') expect(result.target).toMatch(/^\/(?!\/)[!-~]*$/);
        },
      ),
      { numRuns: 3_000 },
    );
  });
});
