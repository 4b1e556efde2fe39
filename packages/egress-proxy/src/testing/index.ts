export { CompanyProxy, PROXY_LOGIN } from './company-proxy.ts';
