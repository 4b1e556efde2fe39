export { encodeFrame } from '../encode-frame.ts';
export type { Frame } from '../frame.ts';
export {
  ANSWER_BREACHES,
  type Breach,
  type BreachedSession,
  breaches,
  dataFrame,
  FULL,
  fin,
  fullWindow,
  json,
  opens,
  PING_FLOOD,
  window,
} from './breaches.ts';
