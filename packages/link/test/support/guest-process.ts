import { connect } from 'node:net';
import { dialLink } from '../../src/dial-link.ts';

const socket = connect(process.argv[2] ?? '');
await dialLink(socket, {
  secret: Buffer.alloc(32, 7),
  generation: 3,
  onStream: (stream, head) => {
    stream.reply({ pid: process.pid, head });
    stream.pipe(stream);
  },
});
