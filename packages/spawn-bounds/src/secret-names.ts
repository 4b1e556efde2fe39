const DENIED_WORDS: readonly string[] = [
  'AUTH',
  'AUTHORIZATION',
  'BEARER',
  'COOKIE',
  'CREDENTIAL',
  'DSN',
  'KEY',
  'OAUTH',
  'PASS',
  'PASSPHRASE',
  'PASSWD',
  'PASSWORD',
  'PAT',
  'PRIVATE',
  'SECRET',
  'TOKEN',
];
/** Words written together without a separator. */
const DENIED_COMPOUNDS: readonly string[] = [
  'ACCESSKEY',
  'APIKEY',
  'APPKEY',
  'AUTHKEY',
  'CLIENTKEY',
  'DEPLOYKEY',
  'ENCRYPTIONKEY',
  'HTPASSWD',
  'MASTERKEY',
  'NETRC',
  'PGPASS',
  'PGPASSFILE',
  'PRIVATEKEY',
  'SECRETKEY',
  'SIGNINGKEY',
  'SSHKEY',
  'SSHPASS',
];
/** Ends of a word that no innocent name has. */
const DENIED_ENDINGS: readonly string[] = ['PASSWORD', 'PASSWD', 'PASSPHRASE', 'SECRET', 'TOKEN', 'CREDENTIAL', 'CREDENTIALS', 'SECRETS'];
const DENIED_NAMES: readonly string[] = ['MYSQL_PWD', 'DOCKER_AUTH_CONFIG'];

/** The words that make a variable's name look like a secret's, as a copy. */
export function deniedWords(): string[] {
  return [...DENIED_WORDS];
}

/**
 * True where a variable's name looks like that of a secret: one of its parts (split at everything that is no letter or digit, and at a
 * change of case) is a denied word, its plural, a known compound, or ends in an unmistakable word.
 */
export function looksLikeSecretName(name: string): boolean {
  if (DENIED_NAMES.includes(name.toUpperCase())) return true;
  return partsOf(name).some((part) => isDenied(part));
}

/** True where a value is a URL that carries a user's password or token. */
export function looksLikeSecretValue(value: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s@]*@/i.test(value) && !/^[a-z][a-z0-9+.-]*:\/\/(?:git)?@/i.test(value);
}

function partsOf(name: string): string[] {
  const pieces = name.split(/[^A-Za-z0-9]+/).filter((piece) => piece !== '');
  const words = pieces.flatMap((piece) =>
    piece
      .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
      .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
      .split('_'),
  );
  return [...pieces, ...words].map((part) => part.toUpperCase().replace(/[0-9]+$/, ''));
}

function isDenied(part: string): boolean {
  const singular = part.endsWith('S') ? part.slice(0, -1) : part;
  return (
    DENIED_WORDS.includes(part) ||
    DENIED_WORDS.includes(singular) ||
    DENIED_COMPOUNDS.includes(part) ||
    DENIED_COMPOUNDS.includes(singular) ||
    DENIED_ENDINGS.some((ending) => part.endsWith(ending))
  );
}
