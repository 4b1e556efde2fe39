import { CodedError } from '@firecrew/base';

/** The file is no package of Debian, or not one of a kernel. */
export function malformedPackage(what: string): CodedError {
  return new CodedError('package_malformed', `the package cannot be used: ${what}`, {
    action: 'Fetch it again: apt-get download linux-image-cloud-amd64 names the package that holds the kernel.',
  });
}
