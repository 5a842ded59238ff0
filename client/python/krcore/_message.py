# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Messages: services that are listened to, connections, and the inbox of a node.

Letters of all connections come into one inbox. They are taken from there only while a thread
waits for one; what comes for others meanwhile is kept for them.
"""

import collections
import contextlib
import ctypes
import errno

from . import _abi
from ._abi import again, failed, lib
from ._error import Closed, Deadline, Error, bytes_of, number_of, seconds_of, status_failure
from ._region import Region, gid_text, key_of, local_of, span

_LETTERS = 64
_ROOM = 64 << 10
_ANSWER_S = 15.0    # after which a peer has been told to take its READ back for sure
KEPT_MAX = 65536    # messages of a connection that wait for recv()

Peer = collections.namedtuple("Peer", "gid address generation service user")
Peer.__doc__ = "Whom a connection is with; `user` is what its program has said before."

_Came = collections.namedtuple("_Came", "letter content peer connection")
_Came.__doc__ = "A letter that was taken; `connection` is that of an offer."


def move(source, target):
    """Move the first item of a deque to the end of another one, by one call of C: a handler of a
    signal, which may raise, runs before it or behind it."""
    target.extend(map(collections.deque.popleft, (source,)))


class Inbox:
    """The inbox of a node, made when it is wanted first: letters, by what they are for."""

    def __init__(self, node):
        self._node = node
        self.wanted = 0         # threads that wait for a letter
        self._made = False
        self._letters = (_abi.Letter * _LETTERS)()
        self._room = ctypes.create_string_buffer(_ROOM)
        self._listeners = {}    # by service
        self._connections = {}  # by number
        self._early = {}        # letters of connections that krcore_connect() is still making
        self._came = None       # deque of what was taken; None: it is in _letters, if anything is

    def clear(self):
        """The node is closed."""
        self._listeners.clear()
        self._connections.clear()
        self._early.clear()
        self._came = None

    def numbers(self):
        """Numbers of all connections."""
        return list(self._connections)

    def _make(self):
        if self._made:
            return
        try:
            self._node._call(lib.krcore_inbox_create, 0, 0)
        except OSError as error:
            if error.errno != errno.EALREADY:   # another thread was faster
                raise
        self._made = True

    # -- services -----------------------------------------------------------------

    def bind(self, service, timeout):
        """See Node.bind()."""
        service = number_of("service", service, _abi.SERVICE_USER_MIN, 65535)
        self._node._look_up(lib.krcore_bind, timeout, service, None)
        return Service(self._node, service)

    def listen(self, service, backlog, timeout):
        """See Node.listen()."""
        service = number_of("service", service, _abi.SERVICE_USER_MIN, 65535)
        backlog = number_of("backlog", backlog, 1, 1024)
        self._make()
        listener = Listener(self._node, service)
        with self._node._turn:      # offers come as soon as it is published
            before = self._listeners.setdefault(service, listener)
        try:
            self._node._look_up(lib.krcore_listen, timeout, service, backlog, None)
        except BaseException:
            with self._node._turn:
                if before is listener:
                    self._listeners.pop(service, None)
            raise
        with self._node._turn:      # before was one that was closed, or failed, meanwhile
            if before is not listener:
                while before._offers:
                    move(before._offers, listener._offers)
                self._listeners[service] = listener
        return listener

    def forget_listener(self, listener):
        """It is closed; with the node's _turn held."""
        if self._listeners.get(listener.service) is listener:
            del self._listeners[listener.service]

    # -- connections --------------------------------------------------------------

    def connect(self, peer, service, user, depth, timeout, fresh):
        """See Node.connect()."""
        key = key_of(peer, number_of("service", service, _abi.SERVICE_USER_MIN, 65535))
        options = _options(user, depth)
        options.flags = _abi.CONNECT_FRESH * bool(fresh)
        deadline = Deadline(seconds_of(timeout))
        self._make()
        number = ctypes.c_uint32()
        connection = Connection(self._node, f"{gid_text(bytes(key.gid))} service {key.service}")
        try:    # a handler of a signal may raise anywhere
            while True:
                options.timeout_ms = deadline.milliseconds(60000)
                try:
                    self._node._call(lib.krcore_connect, ctypes.byref(key), ctypes.byref(options),
                                     ctypes.byref(number))
                    break
                except InterruptedError as error:
                    if not isinstance(error, Error) or not deadline.left():
                        raise
            self._named(connection, number.value)
            connection._opened(deadline)
        except BaseException:
            with contextlib.suppress(Closed, Error):
                self._named(connection, number.value)
                connection.abort()
            raise
        return connection

    def _named(self, connection, number):
        """krcore_connect() has made it, if this is a number."""
        with self._node._turn:
            self._node._check()
            if not number or connection._why:
                return
            connection._number = number
            self._connections[number] = connection
            early = self._early.get(number, ())
            while early:
                came = early[0]
                if came.letter.kind in (_abi.LETTER_MESSAGE, _abi.LETTER_LARGE):
                    move(early, connection._letters)
                else:
                    connection._learns(came)
                    early.popleft()
            self._early.pop(number, None)

    def forget(self, connection):
        """It is closed: its number may name another one; with the node's _turn held."""
        number = connection._number
        if self._connections.get(number) is connection:
            del self._connections[number]
        if self._came is None:
            for letter in self._letters:
                if letter.connection == number:
                    letter.kind = 0
        else:
            self._came = collections.deque(came for came in self._came
                                           if came.letter.connection != number)

    # -- what comes ---------------------------------------------------------------

    def take(self, handle):
        """Take letters and hand them out. One thread at a time. What a signal has kept it from
        handing out is still there the next time, and none is handed out twice."""
        with self._node._turn:      # against a close(), behind which a number is another's
            if not self._came:
                self._take(handle)
            while self._came:
                self._hand_out(handle, self._came[0])

    def _take(self, handle):
        if self._came is not None:
            ctypes.memset(self._letters, 0, ctypes.sizeof(self._letters))
            self._came = None
        if not any(letter.kind for letter in self._letters):    # left by a signal
            taken = lib.krcore_recv(handle, self._letters, _LETTERS, self._room, _ROOM, 0)
            if taken < 0 and taken not in (-errno.EINTR, -errno.ETIMEDOUT):
                raise failed(taken)
        self._came = collections.deque(map(self._read, (letter for letter in self._letters
                                                        if letter.kind)))

    def _read(self, letter):
        content = ctypes.string_at(ctypes.addressof(self._room) + letter.offset, letter.bytes)
        peer = connection = None
        if letter.kind in (_abi.LETTER_OFFER, _abi.LETTER_OPENED):
            peer = _peer(letter, content)
        if letter.kind == _abi.LETTER_OFFER:
            connection = Connection(self._node, f"{peer.address} service {peer.service}")
            connection._number, connection.peer = letter.connection, peer
        return _Came(_abi.Letter.from_buffer_copy(letter), content, peer, connection)

    def _hand_out(self, handle, came):
        """The first of what came, which leaves _came as the last thing."""
        number = came.letter.connection
        connection = self._connections.get(number)
        if came.connection is not None:
            listener = self._listeners.get(came.peer.service)
            if listener is not None:
                self._connections[number] = came.connection
                move(self._came, listener._offers)
                return
            again(lib.krcore_refuse, handle, number)
            if connection is came.connection:   # the listener was closed behind a signal
                del self._connections[number]
        elif connection is None:
            move(self._came, self._early.setdefault(number, collections.deque()))
            return
        elif came.letter.kind in (_abi.LETTER_MESSAGE, _abi.LETTER_LARGE):
            if len(connection._letters) < KEPT_MAX:
                move(self._came, connection._letters)
            else:
                connection._overrun(handle)
            return
        else:
            connection._learns(came)
        self._came.popleft()


def _peer(letter, content):
    peer = _abi.Peer()
    buffer = ctypes.create_string_buffer(content, len(content))
    whole = _abi.Letter.from_buffer_copy(letter)
    whole.offset = 0
    if lib.krcore_letter_peer(ctypes.byref(whole), buffer, ctypes.byref(peer)) < 0:
        raise failed(-errno.EPROTO)
    gid = bytes(peer.gid)
    return Peer(gid, gid_text(gid), peer.generation, peer.service,
                bytes(peer.user)[:peer.user_len])


def _options(user, depth):
    user = bytes_of("user", user, _abi.USER_MAX)
    depth = number_of("depth", depth, 1, _abi.CONNECTION_DEPTH_MAX)
    return _abi.ConnectionOptions(user=user, user_len=len(user), depth=depth)


class Service:
    """A service that is bound: peers find it until close(), or the end of a `with` block."""

    def __init__(self, node, service):
        self._node, self.service, self._bound = node, service, True

    def close(self):
        """Take it back."""
        bound, self._bound = self._bound, False
        if bound and self._node._ours():
            try:
                self._node._call(lib.krcore_unbind, self.service)
            except Closed:
                pass    # with its node
            except Error as error:
                self._bound = error.errno == errno.EBUSY    # by a thread that binds it
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        state = "" if self._bound and not self._node.closed else " closed"
        return f"<krcore.{type(self).__name__} {self.service}{state}>"


class Listener(Service):
    """A service that is listened to; accept() takes the connections that are offered."""

    def __init__(self, node, service):
        super().__init__(node, service)
        self._offers = collections.deque()

    def accept(self, *, user=b"", depth=64, timeout=None):
        """Wait for a program that connects, and accept it; returns a Connection. `user`: up to 32
        bytes that it gets with that."""
        options = _options(user, depth)
        deadline = Deadline(seconds_of(timeout))
        while True:
            if not self._node._await(lambda: self._offers or not self._bound, deadline,
                                     letters=True):
                raise status_failure(-errno.ETIMEDOUT, f"service {self.service}", "nobody came")
            if not self._bound:
                raise Closed("the listener is closed")
            taken = collections.deque()
            try:
                move(self._offers, taken)
                connection = taken[0].connection
                self._node._call_again(lib.krcore_accept, connection._open(),
                                       ctypes.byref(options))
                return connection
            except IndexError:
                continue    # another thread was faster
            except BaseException as error:
                for came in taken:
                    came.connection.abort()
                if not _has_ended(error):
                    raise

    def close(self):
        """Take it back, and refuse what was offered."""
        super().close()
        if not self._node._ours():
            return
        with self._node._turn:
            self._node._inbox.forget_listener(self)
            offers, self._offers = self._offers, collections.deque()
            self._node._turn.notify_all()
        for came in offers:
            came.connection.abort()


def _has_ended(error):
    """Whether an error of krcore_accept() says that the peer has ended meanwhile."""
    return isinstance(error, Error) and (isinstance(error, (ConnectionError, TimeoutError))
                                         or error.errno in (errno.EPROTO, errno.ENOENT))


class Large:
    """A message that was announced: its bytes are still the sender's, which waits for fetch(),
    read() or discard()."""

    def __init__(self, connection, letter):
        self._connection, self._letter = connection, letter

    def __len__(self):
        return self._letter.length

    def __repr__(self):
        return f"<krcore.Large {len(self)} bytes>"

    def fetch(self, local, length=None, *, offset=0, local_offset=0, keep=False, timeout=10.0):
        """READ it, or a part of it, into a region; returns how many bytes. `keep`: more of it is
        fetched later, so that the sender goes on waiting."""
        connection = self._connection
        connection._open()
        mr = local_of(local, connection._node)
        local_offset, here = span(local_offset, None, mr.length, "local_")
        offset, there = span(offset, None, len(self), "")
        most = min(here, there)
        length = most if length is None else number_of("length", length, 1, most)

        def post(handle, user_data):
            with connection._node._turn:
                connection._open()
                local._open()
                return lib.krcore_fetch(handle, ctypes.byref(self._letter), offset,
                                        ctypes.byref(mr), mr.addr + local_offset, length,
                                        _abi.FETCH_KEEP * bool(keep), user_data)

        return connection._node._request(f"fetching {length} bytes, {connection._name}", post,
                                         timeout, local).bytes

    def read(self, *, most=64 << 20, timeout=10.0):
        """READ all of it; returns a bytearray. ValueError if it is longer than `most`."""
        if len(self) > number_of("most", most, 1, _abi.SEND_LARGE_MAX):
            raise ValueError(f"most: the message has {len(self)} bytes")
        data = bytearray(len(self))
        with Region(self._connection._node, data) as region:
            self.fetch(region, timeout=timeout)
        return data

    def discard(self):
        """Do without it."""
        self._connection._call(lib.krcore_discard, ctypes.byref(self._letter))


class Connection:
    """A connection to a program: made by Node.connect() or Listener.accept().

    Reliable and ordered: what was sent as one message arrives as one message, once. `peer` says
    whom it is with. As an iterator it gives what comes until the peer sends no more. At most 65536
    messages are kept for it until they are received; it is aborted beyond that (ENOBUFS).
    """

    def __init__(self, node, name):
        self._node, self._number, self._name = node, None, name
        self._why = ""          # it was aborted here
        self.peer = None
        self._letters = collections.deque()     # a _Came each
        self._ended, self._died = False, 0

    def _learns(self, came):
        """What a letter says that is no message; with the node's _turn held."""
        if came.letter.kind == _abi.LETTER_OPENED:
            self.peer = came.peer
        elif came.letter.kind == _abi.LETTER_ENDED:
            self._ended = True
        elif came.letter.kind == _abi.LETTER_DIED:
            self._died = came.letter.status

    def _overrun(self, handle):
        """More came than is kept; with the node's _turn held."""
        again(lib.krcore_shutdown, handle, self._number, _abi.SHUT_ABORT)
        self._why = f"aborted, as {KEPT_MAX} messages waited for recv()"
        self._node._inbox.forget(self)
        self._number = None
        self._letters.clear()

    def _opened(self, deadline):
        """Wait until the peer has accepted."""
        if not self._node._await(lambda: self.peer or self._died, deadline, letters=True):
            raise status_failure(-errno.ETIMEDOUT, self._name, "it has not accepted in time")
        if self._died:
            raise status_failure(self._died, self._name)

    def _call(self, function, *args):
        """A call while it is open, so that its number is not another one's."""
        with self._node._turn:
            self._open()
            return self._node._call_again(function, *args)

    def _open(self):
        number = self._number
        if number is None and self._why:
            raise status_failure(-errno.ENOBUFS, self._name, self._why)
        if number is None:
            raise Closed("the connection is closed")
        return number

    @property
    def closed(self):
        """Whether it is closed, itself or with its node."""
        return self._number is None or self._node.closed

    def __repr__(self):
        return f"<krcore.Connection {'closed' if self.closed else self._name}>"

    def send(self, data, *, timeout=10.0):
        """Send a message of at most 4032 bytes, and wait until the peer's node has it. A peer that
        reads nothing makes this wait. Longer ones are for send_large()."""
        data = bytes_of("data", data, _abi.SEND_COPY_MAX)
        wr = _abi.SendWr(length=len(data))
        wr.addr = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
        self._send(f"{len(data)} bytes", wr, timeout, data)

    def send_large(self, local, length=None, *, offset=0, timeout=10.0):
        """Announce a message in a region that was made with `message`, and wait until the peer has
        fetched it or has done without. If it takes longer than `timeout`, it is taken back, which
        may last 15 seconds more."""
        mr = local_of(local, self._node)
        offset, most = span(offset, None, mr.length, "")
        most = min(most, _abi.SEND_LARGE_MAX)
        length = most if length is None else number_of("length", length, 1, most)
        wr = _abi.SendWr(mr=mr.handle, addr=mr.addr + offset, length=length)
        self._send(f"{length} bytes", wr, timeout, local, self._take_back)

    def _send(self, what, wr, timeout, kept, late=None):
        def post(handle, user_data):
            wr.user_data = user_data
            with self._node._turn:
                wr.connection = self._open()
                if wr.mr:
                    kept._open()
                return lib.krcore_send_many(handle, ctypes.byref(wr), 1, None)

        self._node._request(f"sending {what}, {self._name}", post, timeout, kept, late=late)

    def _take_back(self, user_data):
        """The memory of an announced message is wanted back; seconds in which it will be."""
        try:
            self._call(lib.krcore_cancel, self._open(), user_data)
        except (Closed, Error):
            pass    # done meanwhile
        return _ANSWER_S

    def recv(self, *, timeout=None):
        """The next message: bytes, or a Large one; None when the peer sends no more. An Error if
        the connection has died, once all that came before was received."""
        self._open()
        deadline = Deadline(seconds_of(timeout))
        while True:
            if not self._node._await(lambda: self._letters or self._ended or self._died
                                     or self._number is None, deadline, letters=True):
                raise status_failure(-errno.ETIMEDOUT, self._name, "no message came in time")
            self._open()
            try:
                came = self._letters.popleft()
            except IndexError:
                pass    # there is none, or another thread was faster
            else:
                return came.content if came.letter.kind == _abi.LETTER_MESSAGE \
                    else Large(self, came.letter)
            if self._died:
                raise status_failure(self._died, self._name)
            if self._ended:
                return None

    def __iter__(self):
        return iter(self.recv, None)

    def shutdown(self):
        """Send no more: recv() of the peer gives None behind all that was sent."""
        self._call(lib.krcore_shutdown, self._open(), _abi.SHUT_SEND)

    def close(self):
        """End it; what was sent still arrives."""
        self._shut(_abi.SHUT_CLOSE)

    def abort(self):
        """End it now; the peer gets ECONNRESET."""
        self._shut(_abi.SHUT_ABORT)

    def _shut(self, how):
        if not self._node._ours():
            return
        with self._node._turn:      # so that no letter of the next one of this number is its
            if self._number is None or self._node.closed:
                return
            try:
                self._node._call_again(lib.krcore_shutdown, self._number, how)
            finally:
                self._node._inbox.forget(self)
                self._number = None
                self._node._turn.notify_all()

    def __enter__(self):
        self._open()
        return self

    def __exit__(self, *_):
        self.close()
