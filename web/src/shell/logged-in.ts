import { keep, kept } from '@/state/kept';

/** Whether somebody logged in on this page: its cookie is not for scripts to read. Where no login is asked for, nobody did. */
const STORED = 'throughline-logged-in';

export const isLoggedIn = (): boolean => kept(STORED) !== null;

export const noteLogin = (loggedIn: boolean): void => keep(STORED, loggedIn ? 'yes' : null);
