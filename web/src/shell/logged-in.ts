import { keep, kept } from '@/state/kept';

/** Whether somebody logged in on this page, whose scripts cannot read the cookie. Without a login, nobody did. */
const STORED = 'throughline-logged-in';

export const isLoggedIn = (): boolean => kept(STORED) !== null;

export const noteLogin = (loggedIn: boolean): void => keep(STORED, loggedIn ? 'yes' : null);
