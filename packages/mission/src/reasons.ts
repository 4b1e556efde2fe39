/** Why an event is not applied. `stale` is normal: a message of an attempt that is fenced off. */
export type RefusalCode =
  | 'mission_not_draft'
  | 'mission_not_running'
  | 'mission_ended'
  | 'mission_without_phases'
  | 'phase_not_found'
  | 'phase_not_retryable'
  | 'turn_not_found'
  | 'turn_not_waiting'
  | 'attempt_stale'
  | 'attempt_ended'
  | 'delivery_not_wanted';
