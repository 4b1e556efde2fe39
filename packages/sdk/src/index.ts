export { type ApiErrorOptions, FirecrewApiError } from './api-error.ts';
export { type ClientOptions, type DrainReply, type EventOptions, FirecrewClient, type LogOptions, type ReceivedPack } from './client.ts';
export { type FollowOptions, RECONNECT_PAUSES_MS } from './follow-stream.ts';
export { ANSWER_TIMEOUT_MS, type ServerAddress, STREAM_SILENCE_MS } from './http-calls.ts';
export { MAX_STREAM_MESSAGE_CHARS } from './parse-event-stream.ts';
export type { ReceivedFile } from './receive-file.ts';
