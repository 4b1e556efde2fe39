/** The broker's user and group where the node agent runs as root: the number below the server's, which needs no entry in `/etc/passwd`. */
export const BROKER_OWNER = { uid: 199_998, gid: 199_998 } as const;
