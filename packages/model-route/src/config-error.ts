/** Why a route or a price table must not be used. */
export type RouteConfigFault = 'route_invalid' | 'price_table_invalid';

/** A configuration that must not be used; recognised by `code`. */
export class RouteConfigError extends Error {
  readonly code: RouteConfigFault;

  constructor(code: RouteConfigFault, message: string) {
    super(message);
    this.name = 'RouteConfigError';
    this.code = code;
  }
}
