import { asciiFolded } from './path-text.ts';

/** What a path looks like a holder of. */
export type SecretReason =
  | 'dotenv'
  | 'private_key'
  | 'key_store'
  | 'registry_token'
  | 'machine_login'
  | 'cloud_credential'
  | 'cluster_credential'
  | 'password_file'
  | 'infrastructure_state';

const SAMPLE = /\.(?:example|sample|template|tmpl|dist|defaults?|schema)$/;

const NAMES: ReadonlyArray<readonly [RegExp, SecretReason]> = [
  [/^\.env(?:\..+|rc)?$|^.+\.env$|^\.flaskenv$|^\.dev\.vars$/, 'dotenv'],
  [/^id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?:_sk)?(?:[._-].*)?$|^.*_(?:rsa|dsa|ecdsa|ed25519)$/, 'private_key'],
  [/^.+\.(?:pem|key|ppk|pkcs8|p8|asc\.key|gpg\.key)$/, 'private_key'],
  [/^.+\.(?:p12|pfx|jks|keystore|bks|kdbx?|agekey)$/, 'key_store'],
  [
    /^\.(?:npmrc|yarnrc|pypirc|dockercfg|gem_credentials|cargo-credentials|terraformrc)$|^\.yarnrc\.yml$|^terraform\.rc$|^nuget\.config$/,
    'registry_token',
  ],
  [/^\.?_?netrc$|^\.git-credentials$|^\.authinfo(?:\.gpg)?$|^\.s3cfg$|^\.boto$/, 'machine_login'],
  [
    /^(?:service-?account|gcp-?key|credentials|client_secrets?|application_default_credentials)(?:[._-].*)?\.json$|^.+\.publishsettings$/,
    'cloud_credential',
  ],
  [/^kubeconfig(?:\..+)?$|^.+\.kubeconfig$/, 'cluster_credential'],
  [
    /^\.?(?:htpasswd|pgpass|my\.cnf|vault-token|vault_pass(?:word)?(?:\.txt)?)$|^secrets?\.(?:ya?ml|json|toml|ini|txt)$|^master\.key$/,
    'password_file',
  ],
  [/^.+\.tfstate(?:\.backup)?$|^.+\.auto\.tfvars$|^terraform\.tfvars$/, 'infrastructure_state'],
];

const PLACES: ReadonlyArray<readonly [RegExp, SecretReason]> = [
  [/(?:^|\/)\.ssh\/(?!known_hosts|authorized_keys|config$)[^/]+$/, 'private_key'],
  [/(?:^|\/)\.gnupg\//, 'private_key'],
  [/(?:^|\/)\.aws\/(?:credentials|config)$|(?:^|\/)\.azure\/|(?:^|\/)\.config\/gcloud\/|(?:^|\/)\.oci\/config$/, 'cloud_credential'],
  [/(?:^|\/)\.kube\/config$/, 'cluster_credential'],
  [
    /(?:^|\/)\.docker\/config\.json$|(?:^|\/)\.cargo\/credentials(?:\.toml)?$|(?:^|\/)\.m2\/settings\.xml$|(?:^|\/)\.gem\/credentials$/,
    'registry_token',
  ],
  [/(?:^|\/)\.config\/gh\/hosts\.yml$/, 'machine_login'],
];

/** What kind of secret `path` (bytes or text, relative, any case) looks like it holds, judged by its name alone; undefined for none. */
export function isSecretShaped(path: string | Uint8Array): SecretReason | undefined {
  // A line end in a name would end what `.` matches.
  const folded = asciiFolded(path).replace(/[\n\r]/g, ' ');
  const name = folded.slice(folded.lastIndexOf('/') + 1);
  if (name.endsWith('.pub') || SAMPLE.test(name)) return undefined;
  return NAMES.find(([shape]) => shape.test(name))?.[1] ?? PLACES.find(([shape]) => shape.test(folded))?.[1];
}
