import { CaptureError } from '../capture-error.ts';

/** The NUL-terminated fields of a listing that git wrote with `-z`. @throws CaptureError `malformed_listing` when the last one is cut. */
export function splitFields(listing: Uint8Array): Uint8Array[] {
  if (listing.length > 0 && listing.at(-1) !== 0) throw new CaptureError('malformed_listing', 'the listing ends inside a field');
  const fields: Uint8Array[] = [];
  let from = 0;
  for (let at = listing.indexOf(0); at !== -1; at = listing.indexOf(0, from)) {
    fields.push(listing.slice(from, at));
    from = at + 1;
  }
  return fields;
}

/** The next field as a path. @throws CaptureError `malformed_listing` when there is none. */
export function takePath(fields: Iterator<Uint8Array>): Uint8Array {
  const next = fields.next();
  if (next.done === true || next.value.length === 0) throw new CaptureError('malformed_listing', 'a path is missing');
  return next.value;
}
