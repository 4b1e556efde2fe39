/** Why an archive, a manifest or a git listing was refused as a whole. */
export const CAPTURE_ERROR_CODES = [
  'bad_checksum',
  'bad_magic',
  'bad_number',
  'bad_pax_record',
  'content_after_end',
  'dangling_extension',
  'duplicate_path',
  'empty_path',
  'absolute_path',
  'parent_component',
  'nul_in_path',
  'component_too_long',
  'path_too_long',
  'path_under_non_directory',
  'link_target_missing',
  'link_target_empty',
  'malformed_listing',
  'malformed_manifest',
  'metadata_too_large',
  'mixed_dialects',
  'missing_end',
  'names_too_large',
  'payload_on_non_file',
  'size_disagreement',
  'too_deep',
  'too_many_entries',
  'file_too_large',
  'tree_too_large',
  'padding_too_large',
  'truncated',
  'type_changed',
  'unsupported_extension',
  'unsupported_type',
  'file_path_is_folder',
] as const;

/** One of {@link CAPTURE_ERROR_CODES}. */
export type CaptureErrorCode = (typeof CAPTURE_ERROR_CODES)[number];

/** Why one entry of an accepted archive was dropped; the others arrive. */
export const SKIP_REASONS = ['git_metadata', 'gitmodules_link', 'special_file', 'unknown_type'] as const;

/** One of {@link SKIP_REASONS}. */
export type SkipReason = (typeof SKIP_REASONS)[number];
